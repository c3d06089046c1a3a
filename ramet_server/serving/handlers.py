"""Turns a servicer with plain methods into gRPC handlers, by the service's descriptor.

A servicer's method has the name of its RPC and one of these shapes:

* ``def Name(self, request, call) -> reply``: runs on a worker thread;
* the same, and named in the servicer's ``gathers``: done in groups; see ``gathering``;
* ``def Name(self, request, call) -> Iterator[reply]``: a stream whose every step runs on a worker
  thread, so that a slow client holds none;
* ``async def``, as a coroutine or an async generator: lives on the event loop and must never block
  it; the only shape for streams of requests, which come as an async iterator;
* ``async def Name(self, requests, call, workers)``: the same with the worker threads at hand, and
  with each request of its stream as an ``Unparsed``, to be parsed on one of them;
* ``async def Name(self, requests, call, workers, ending)``: the same for a stream that ends by itself
  before long, so that a drain need not end it; ``ending`` can, at any moment.

A method of the first shape may be marked ``@long``: such calls hold half of the threads at most.

The loop handles bytes only: messages are parsed and serialized where the method runs.
"""

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from ramet_server.domain.call import Call
from ramet_server.domain.errors import Draining, InvalidMessage, NotServed, too_large
from ramet_server.serving.conduct import Context, conduct
from ramet_server.serving.door import Door
from ramet_server.serving.endings import Ending
from ramet_server.serving.gathering import Gathered, Gatherer
from ramet_server.serving.long_calls import LongCalls
from ramet_server.serving.workers import Share, Workers

# One step of a stream ends at the first of these, so that a million small messages do not each pay
# for a change of threads, and a first message is not held back.
_STEP_MESSAGES = 64
_STEP_BYTES = 256 * 1024
_STEP_SECONDS = 0.01

_T = TypeVar("_T", bound=Callable[..., Any])

_Behaviour = Callable[[Any, Context], Awaitable[bytes | None]]


@dataclass(frozen=True)
class Setting:
    """What the handlers of all services share."""

    workers: Workers
    door: Door
    long_calls: LongCalls
    max_message_bytes: int


@dataclass(frozen=True, slots=True)
class Unparsed:
    """A request of a stream as it came."""

    size: int
    """In bytes."""
    parse: Callable[[], Any]
    """Returns the message; raises InvalidMessage where the bytes are none."""


def long(method: _T) -> _T:
    """Marks a method whose calls may take long, so that they never take all the threads."""
    vars(method)["is_long"] = True
    return method


@dataclass(frozen=True)
class Serialized:
    """A reply that a method with the workers at hand has serialized on one of them, because it may be large."""

    raw: bytes


def generic_handler(descriptor: ServiceDescriptor, servicer: object, setting: Setting) -> grpc.GenericRpcHandler:
    """Builds the handlers of one service; a method that the servicer lacks answers NotServed."""
    handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
    gathers: Mapping[str, Gathered] = getattr(servicer, "gathers", {})
    share = Share(setting.workers)
    for method in descriptor.methods:
        codec = _Codec(method, setting.max_message_bytes)
        own, gathered = getattr(servicer, method.name, None), gathers.get(method.name)
        behaviour = _gathered(codec, gathered, own, setting) if gathered else _behaviour(codec, own, setting, share)
        handlers[method.name] = _handler(method, behaviour)
    return grpc.method_handlers_generic_handler(descriptor.full_name, handlers)


def _handler(method: MethodDescriptor, behaviour: _Behaviour) -> "grpc.RpcMethodHandler[Any, Any]":
    if method.client_streaming and method.server_streaming:
        return grpc.stream_stream_rpc_method_handler(behaviour)
    if method.client_streaming:
        return grpc.stream_unary_rpc_method_handler(behaviour)
    if method.server_streaming:
        return grpc.unary_stream_rpc_method_handler(behaviour)
    return grpc.unary_unary_rpc_method_handler(behaviour)


def _behaviour(codec: "_Codec", method: Callable[..., Any] | None, setting: Setting, share: Share) -> _Behaviour:
    if method is None:
        return _not_served(codec)
    if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
        if codec.replies_stream != inspect.isasyncgenfunction(method):
            raise TypeError(f"{codec.name} must be {'a generator' if codec.replies_stream else 'a coroutine'}.")
        return _on_loop(codec, method, setting)
    if codec.requests_stream:
        raise TypeError(f"{codec.name} takes a stream of requests and must be async.")
    if codec.replies_stream:
        return _streamed(codec, method, setting)
    return _unary(codec, method, setting, share if getattr(method, "is_long", False) else setting.workers)


class _Codec:
    """Bytes to requests and replies to bytes, of one method."""

    def __init__(self, method: MethodDescriptor, max_message_bytes: int) -> None:
        self.name = f"{method.containing_service.full_name}/{method.name}"
        self.requests_stream: bool = method.client_streaming
        self.replies_stream: bool = method.server_streaming
        self._request_class = GetMessageClass(method.input_type)
        self._reply_class = GetMessageClass(method.output_type)
        self._max_message_bytes = max_message_bytes

    def parse(self, raw: bytes) -> Message:
        try:
            return self._request_class.FromString(raw)
        except DecodeError:
            raise InvalidMessage(f"The bytes are no {self._request_class.DESCRIPTOR.full_name}.") from None

    def serialize(self, reply: Message | Serialized) -> bytes:
        if isinstance(reply, Serialized):
            raw = reply.raw
        elif isinstance(reply, self._reply_class):
            raw = reply.SerializeToString()
        else:
            raise TypeError(f"{self.name} returned {type(reply).__name__}.")
        if len(raw) > self._max_message_bytes:
            raise too_large("The reply", self._max_message_bytes, "bytes")
        return raw


def _not_served(codec: _Codec) -> _Behaviour:
    async def refuse(_: Call) -> bytes:
        raise NotServed(f"This server does not serve {codec.name} yet.")

    async def behave(_: object, context: Context) -> bytes | None:
        answer = await conduct(context, codec.name, None, refuse)
        return None if codec.replies_stream else answer

    return behave


def _unary(
    codec: _Codec, method: Callable[[Message, Call], Message], setting: Setting, threads: Workers | Share
) -> _Behaviour:
    async def behave(raw: bytes, context: Context) -> bytes:
        async def body(call: Call) -> bytes:
            def work() -> bytes:
                call.check()
                return codec.serialize(method(codec.parse(raw), call))

            return await threads.run(work)

        return await conduct(context, codec.name, setting.door, body)

    return behave


def _gathered(
    codec: _Codec, gathered: Gathered, method: Callable[[Any, Call], Message] | None, setting: Setting
) -> _Behaviour:
    if method is None:
        raise TypeError(f"{codec.name} is gathered and must be served alone, too.")
    gatherer = Gatherer(codec, gathered, method, setting.workers)

    async def behave(raw: bytes, context: Context) -> bytes:
        return await conduct(context, codec.name, setting.door, partial(gatherer.run, raw))

    return behave


def _streamed(codec: _Codec, method: Callable[[Message, Call], Iterator[Message]], setting: Setting) -> _Behaviour:
    async def behave(raw: bytes, context: Context) -> None:
        async def body(call: Call) -> bytes:
            steps = _Steps(codec, lambda: method(codec.parse(raw), call), call)
            step: Future[_Step] = setting.workers.submit(steps.take)
            try:
                while True:
                    taken = await asyncio.wrap_future(step)
                    for reply in taken.replies:
                        await context.write(reply)
                    if taken.error is not None:
                        raise taken.error
                    if taken.ended:
                        return b""
                    step = setting.workers.submit(steps.take, bounded=False)
            finally:
                # A generator cannot be closed while its step still runs.
                step.add_done_callback(lambda _: steps.close_on(setting.workers))

        await conduct(context, codec.name, setting.door, body)

    return behave


@dataclass(frozen=True)
class _Step:
    replies: list[bytes]
    ended: bool
    error: BaseException | None = None


class _Steps:
    """Takes replies from a servicer's iterator, some at a time; one step runs at once."""

    def __init__(self, codec: _Codec, start: Callable[[], Iterator[Message]], call: Call) -> None:
        self._codec = codec
        self._start = start
        self._call = call
        self._replies: Iterator[Message] | None = None
        self._ended = False

    def take(self) -> _Step:
        replies: list[bytes] = []
        size = 0
        until = time.monotonic() + _STEP_SECONDS
        try:
            self._call.check()
            if self._replies is None:
                self._replies = iter(self._start())
            for reply in self._replies:
                raw = self._codec.serialize(reply)
                replies.append(raw)
                size += len(raw)
                if len(replies) >= _STEP_MESSAGES or size >= _STEP_BYTES or time.monotonic() >= until:
                    return _Step(replies, ended=False)
        except Exception as error:  # noqa: BLE001 - raised again where the call is conducted, after the replies before it
            return _Step(replies, ended=True, error=error)
        self._ended = True
        return _Step(replies, ended=True)

    def close_on(self, workers: Workers) -> None:
        """Has the iterator closed on a worker where it did not end by itself; never blocks."""
        close = getattr(self._replies, "close", None)
        if self._ended or close is None:
            return
        try:
            workers.submit(close, bounded=False)
        except Draining:
            # The threads are gone and the process follows; what the iterator holds goes with it.
            return


def _on_loop(codec: _Codec, method: Callable[..., Any], setting: Setting) -> _Behaviour:
    parameters = inspect.signature(method).parameters
    with_workers, ends_by_itself = "workers" in parameters, "ending" in parameters

    async def behave(incoming: Any, context: Context) -> bytes | None:
        async def body(call: Call) -> bytes:
            request = _requests(codec, incoming, with_workers) if codec.requests_stream else codec.parse(incoming)
            more: tuple[object, ...] = (setting.workers,) if with_workers else ()
            ending = Ending()
            if ends_by_itself:
                more += (ending,)
            if not codec.replies_stream and not codec.requests_stream:
                return codec.serialize(await method(request, call, *more))
            with ending.hold() if ends_by_itself else setting.long_calls.hold():
                if not codec.replies_stream:
                    return codec.serialize(await method(request, call, *more))
                async with aclosing(method(request, call, *more)) as replies:
                    async for reply in replies:
                        await context.write(codec.serialize(reply))
            return b""

        answer = await conduct(context, codec.name, setting.door, body)
        return None if codec.replies_stream else answer

    return behave


async def _requests(codec: _Codec, incoming: AsyncIterator[bytes], unparsed: bool) -> AsyncIterator[Any]:
    async for raw in incoming:
        yield Unparsed(len(raw), partial(codec.parse, raw)) if unparsed else codec.parse(raw)
