"""A tiny service, made at run time, whose methods do what the tests of serving need."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass

from ramet_server.domain.call import Call

NAME = "ramet.test.v1.Echo"


def _describe() -> ServiceDescriptor:
    file = descriptor_pb2.FileDescriptorProto(name="ramet/test/v1/echo.proto", package="ramet.test.v1", syntax="proto3")
    text = file.message_type.add(name="Text")
    text.field.add(name="text", number=1, type="TYPE_STRING", label="LABEL_OPTIONAL")
    text.field.add(name="count", number=2, type="TYPE_INT64", label="LABEL_OPTIONAL")
    service = file.service.add(name="Echo")
    for name, requests_stream, replies_stream in (
        ("Say", False, False),
        ("SayAsync", False, False),
        ("Count", False, True),
        ("Watch", False, True),
        ("Gather", True, False),
        ("Chat", True, True),
        ("Missing", False, False),
        ("MissingStream", True, True),
    ):
        service.method.add(
            name=name,
            input_type=".ramet.test.v1.Text",
            output_type=".ramet.test.v1.Text",
            client_streaming=requests_stream,
            server_streaming=replies_stream,
        )
    pool = descriptor_pool.Default()
    pool.Add(file)
    return pool.FindServiceByName(NAME)


DESCRIPTOR = _describe()
Text: Any = GetMessageClass(DESCRIPTOR.methods_by_name["Say"].input_type)


class Gate:
    """Holds threads until a test lets them go, and tells the test that they have come."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.go = threading.Event()

    def wait(self) -> None:
        """Waits for ``go``, as a statement in a slow database would."""
        self.entered.release()
        if not self.go.wait(30):
            raise TimeoutError("No test let this thread go.")


class EchoServicer:
    """Answers by the request's text; ``on_say`` may be replaced by what a test needs."""

    def __init__(self) -> None:
        self.gate = Gate()
        self.on_say: Callable[[Any, Call], Any] = lambda request, call: Text(text=request.text)
        self.calls: list[Call] = []
        self.closed = threading.Event()
        self.closed_on = ""
        self.counted = 0

    def Say(self, request: Any, call: Call) -> Any:
        self.calls.append(call)
        if request.text == "wait":
            self.gate.wait()
        return self.on_say(request, call)

    async def SayAsync(self, request: Any, call: Call) -> Any:
        await asyncio.sleep(0)
        return Text(text=request.text, count=len(call.space))

    def Count(self, request: Any, call: Call) -> Iterator[Any]:
        self.calls.append(call)
        try:
            for n in range(request.count):
                if request.text == "wait" and n == 1:
                    self.gate.wait()
                self.counted = n + 1
                yield Text(text="x" * 1000 if request.text == "long" else "", count=n)
            self.on_say(request, call)
        finally:
            self.closed_on = threading.current_thread().name
            self.closed.set()

    async def Watch(self, request: Any, call: Call) -> AsyncIterator[Any]:
        self.calls.append(call)
        try:
            yield Text(text="first")
            await asyncio.Event().wait()
        finally:
            self.closed.set()

    async def Gather(self, requests: AsyncIterator[Any], call: Call) -> Any:
        return Text(text="".join([request.text async for request in requests]))

    async def Chat(self, requests: AsyncIterator[Any], call: Call) -> AsyncIterator[Any]:
        async for request in requests:
            yield Text(text=request.text[::-1])
