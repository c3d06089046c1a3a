"""A small real server whose answers a test scripts: for what a healthy server would not do on demand."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2, status_pb2

from ramet.session.v1 import session_pb2
from ramet.tree.v1 import tree_pb2


@dataclass(frozen=True)
class Fails:
    """An answer that is a status."""

    code: grpc.StatusCode
    reason: str = ""
    retry_after_s: float | None = None


@dataclass(frozen=True)
class Hangs:
    """No answer until the caller is gone."""


@dataclass(frozen=True)
class Streams:
    """The answers of one server stream, in order."""

    answers: tuple[Message | Fails | Hangs, ...]


Answer = Message | Fails | Hangs | Streams


@dataclass
class Scripted:
    """A server that gives each method's answers in turn, the last one again and again."""

    answers: dict[str, list[Answer]]
    address: str = ""
    requests: list[tuple[str, Any]] = field(default_factory=list)
    metadata: list[dict[str, str | bytes]] = field(default_factory=list)
    deadlines: list[float] = field(default_factory=list)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: asyncio.Event = field(default_factory=asyncio.Event)

    def heard(self, method: str) -> list[Any]:
        """The requests that a method got, attempt by attempt."""
        return [request for name, request in self.requests if name == method]

    def next_answer(self, method: str, request: Message, context: Any) -> Answer:
        """Notes the call and takes its answer from the script."""
        self.requests.append((method, request))
        self.metadata.append(dict(context.invocation_metadata() or ()))
        self.deadlines.append(context.time_remaining())
        script = self.answers[method]
        return script.pop(0) if len(script) > 1 else script[0]

    async def give(self, answer: Answer, context: Any) -> Message:
        """Gives one answer: a message, a status, or none at all."""
        if isinstance(answer, Hangs):
            self.waiting.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.gone.set()
        if isinstance(answer, Fails):
            await context.abort(answer.code, "As scripted.", _details(answer))
        assert isinstance(answer, Message)
        return answer


@asynccontextmanager
async def scripted(
    *, credentials: grpc.ServerCredentials | None = None, **answers: Answer | list[Answer]
) -> AsyncIterator[Scripted]:
    """Runs a server that answers the named methods of both contracts."""
    script = Scripted({name: answer if isinstance(answer, list) else [answer] for name, answer in answers.items()})
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", -1)])
    server.add_generic_rpc_handlers([_Handlers(script)])
    if credentials is None:
        script.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    else:
        script.address = f"localhost:{server.add_secure_port('localhost:0', credentials)}"
    await server.start()
    try:
        yield script
    finally:
        await server.stop(None)


class _Handlers(grpc.GenericRpcHandler):
    def __init__(self, script: Scripted) -> None:
        self._script = script
        self._methods = {
            f"/{service.full_name}/{method.name}": method
            for file in (session_pb2.DESCRIPTOR, tree_pb2.DESCRIPTOR)
            for service in file.services_by_name.values()
            for method in service.methods
        }

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        method = self._methods.get(details.method)
        if method is None or method.name not in self._script.answers:
            return None
        name = method.name

        async def unary(request: Message, context: Any) -> Message:
            return await self._script.give(self._script.next_answer(name, request, context), context)

        async def stream(request: Message, context: Any) -> AsyncIterator[Message]:
            answer = self._script.next_answer(name, request, context)
            for part in answer.answers if isinstance(answer, Streams) else (answer,):
                yield await self._script.give(part, context)

        async def exchange(requests: AsyncIterator[Message], context: Any) -> AsyncIterator[Message]:
            async for request in requests:
                yield await self._script.give(self._script.next_answer(name, request, context), context)

        kinds: dict[tuple[bool, bool], tuple[Any, Any]] = {
            (False, False): (grpc.unary_unary_rpc_method_handler, unary),
            (False, True): (grpc.unary_stream_rpc_method_handler, stream),
            (True, True): (grpc.stream_stream_rpc_method_handler, exchange),
        }
        make, handle = kinds[method.client_streaming, method.server_streaming]
        return make(
            handle,
            request_deserializer=GetMessageClass(method.input_type).FromString,
            response_serializer=lambda message: message.SerializeToString(),
        )


def _details(answer: Fails) -> tuple[tuple[str, bytes], ...]:
    status = status_pb2.Status(code=answer.code.value[0], message="As scripted.")
    details: list[Message] = (
        [error_details_pb2.ErrorInfo(reason=answer.reason, domain="ramet")] if answer.reason else []
    )
    if answer.retry_after_s is not None:
        delay = duration_pb2.Duration()
        delay.FromMilliseconds(round(answer.retry_after_s * 1000))
        details.append(error_details_pb2.RetryInfo(retry_delay=delay))
    for detail in details:
        packed = any_pb2.Any()
        packed.Pack(detail)
        status.details.append(packed)
    return (("grpc-status-details-bin", status.SerializeToString()),)
