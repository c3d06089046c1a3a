"""How one call is made: its deadline, its space, its request id, and the retries that gRPC itself cannot do."""

import asyncio
import random
import uuid
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from ramet.client.arguments import check_seconds
from ramet.client.channel import MAX_MESSAGE_BYTES
from ramet.client.errors import (
    Cancelled,
    DeadlineExceeded,
    RametError,
    ResourceExhausted,
    Unavailable,
    from_rpc_error,
    too_large,
)

__all__ = ["PATIENCE_S", "Caller", "Settings", "new_request_id"]

PATIENCE_S = 60.0
"""How long a watch looks for a server after it has lost one, in seconds, where nothing else is said."""

_Response = TypeVar("_Response")

_ATTEMPTS = 4
_FIRST_BACKOFF_S = 0.05
_LONGEST_BACKOFF_S = 2.0


@dataclass(frozen=True)
class Settings:
    """What every call of a client shares."""

    space: str
    """The space that the calls are about."""
    timeout_s: float
    """Deadline of each call in seconds, its retries included."""


def new_request_id() -> str:
    """Makes an id for one write."""
    return uuid.uuid4().hex


class Caller:
    """Makes the calls of one service.

    gRPC retries UNAVAILABLE by the service config. OVERLOADED and WRITE_CONFLICT share their codes with errors that no
    retry can help, and CANCELLED by a server that ends is not the caller's wish, so these are retried here, with the
    same message and thus the same request id.
    """

    def __init__(self, settings: Settings, target: str) -> None:
        self._settings = settings
        self._target = target

    async def unary(self, method: grpc.aio.UnaryUnaryMultiCallable[Any, _Response], request: Message) -> _Response:
        """Makes one call and returns its answer; raises a RametError."""
        attempts = self.attempts(request)
        while True:
            try:
                return await method(request, timeout=attempts.remaining_s(), metadata=self.metadata())
            except asyncio.CancelledError:
                attempts.raise_if_closed()
                raise
            except grpc.aio.AioRpcError as failure:
                await attempts.pause_or_raise(failure)

    async def stream(
        self, method: grpc.aio.UnaryStreamMultiCallable[Any, _Response], request: Message
    ) -> AsyncGenerator[_Response, None]:
        """Yields the messages of one server stream; leaving early cancels it. Raises a RametError."""
        attempts = self.attempts(request)
        begun = False
        while True:
            call = method(request, timeout=attempts.remaining_s(), metadata=self.metadata())
            try:
                async for message in call:
                    begun = True
                    yield message
            except asyncio.CancelledError:
                attempts.raise_if_closed()
                raise
            except grpc.aio.AioRpcError as failure:
                if begun:
                    raise attempts.typed(failure) from failure
                await attempts.pause_or_raise(failure)
            else:
                return
            finally:
                call.cancel()

    async def watch(
        self,
        method: grpc.aio.UnaryStreamMultiCallable[Any, _Response],
        request: Message,
        move_on: Callable[[_Response], None],
        patience_s: float,
    ) -> AsyncGenerator[_Response, None]:
        """Yields the messages of a stream that never ends, whatever the deadline of calls is; leaving cancels it.

        Where a server drains or is lost, one is looked for again, for up to ``patience_s`` seconds. ``move_on`` takes
        each message, the first of which comes at once, and makes the request one that goes on behind it.
        """
        attempts = self.attempts(request, check_seconds(patience_s, "patience_s"))
        while True:
            call = method(request, metadata=self.metadata())
            begun = False
            try:
                async for message in call:
                    begun = True
                    move_on(message)
                    yield message
            except asyncio.CancelledError:
                attempts.raise_if_closed()
                raise
            except grpc.aio.AioRpcError as failure:
                if begun:
                    attempts = self.attempts(request, patience_s)
                await attempts.pause_or_raise(failure, lasting=True)
            finally:
                call.cancel()

    @property
    def timeout_s(self) -> float:
        """Deadline of each call in seconds."""
        return self._settings.timeout_s

    def attempts(
        self, request: Message, timeout_s: float | None = None, *, request_id: str | None = None
    ) -> "_Attempts":
        """Returns what counts the attempts of one call; ``request_id`` where the request does not bear it itself."""
        return _Attempts(request, self.timeout_s if timeout_s is None else timeout_s, self._target, request_id)

    def metadata(self) -> grpc.aio.Metadata:
        """Returns the metadata of each call."""
        return grpc.aio.Metadata(("ramet-space", self._settings.space))


class _Attempts:
    """Counts the attempts of one call within its deadline."""

    def __init__(self, request: Message, timeout_s: float, target: str, request_id: str | None) -> None:
        self._request = request
        self._method = request.DESCRIPTOR.name.removesuffix("Request")
        self._request_id: str | None = request_id or getattr(request, "request_id", None) or None
        self._timeout_s = timeout_s
        self._target = target
        self._deadline = asyncio.get_running_loop().time() + timeout_s
        self._made = 0

    def remaining_s(self) -> float:
        return max(0.0, self._deadline - asyncio.get_running_loop().time())

    def typed(self, failure: grpc.aio.AioRpcError) -> RametError:
        error = from_rpc_error(failure, method=self._method, request_id=self._request_id)
        if error.reason:
            return error
        if isinstance(error, ResourceExhausted) and self._request.ByteSize() > MAX_MESSAGE_BYTES:
            return too_large(MAX_MESSAGE_BYTES, method=self._method, request_id=self._request_id)
        if isinstance(error, Unavailable):
            error.message = f"No server can be reached at {self._target}: {error.message}"
        elif isinstance(error, DeadlineExceeded):
            error.message = self._late()
        return error

    def late(self) -> DeadlineExceeded:
        """Returns what says that no answer came in time."""
        code = grpc.StatusCode.DEADLINE_EXCEEDED
        return DeadlineExceeded(self._late(), code=code, method=self._method, request_id=self._request_id)

    def _late(self) -> str:
        return f"No answer came from {self._target} within {self._timeout_s:g} s."

    def raise_if_closed(self) -> None:
        """Tells a call that ended with its channel from one whose task is cancelled: gRPC raises the same for both."""
        task = asyncio.current_task()
        if task is not None and not task.cancelling():
            code, message = grpc.StatusCode.CANCELLED, "The client was closed during the call."
            raise Cancelled(message, code=code, method=self._method, request_id=self._request_id)

    async def pause_or_raise(
        self, failure: grpc.aio.AioRpcError, error: RametError | None = None, *, lasting: bool = False
    ) -> None:
        """Waits for the next attempt; a ``lasting`` call makes as many as there is time for, and waits for a server.

        ``error`` is what the failure means where its status alone does not tell.
        """
        self._made += 1
        error = error or self.typed(failure)
        # A server that ends cancels what just arrived; a call that is cancelled from here does not come this way.
        may_help = isinstance(error, Cancelled) or error.reason in ("OVERLOADED", "WRITE_CONFLICT")
        may_help = may_help or (lasting and isinstance(error, Unavailable))
        if not may_help or (self._made == _ATTEMPTS and not lasting):
            raise error from failure
        pause = error.retry_after_s or min(_FIRST_BACKOFF_S * 2 ** (self._made - 1), _LONGEST_BACKOFF_S)
        pause *= random.uniform(1.0, 1.5)  # noqa: S311 - spreads the callers, guards nothing
        if pause >= self.remaining_s():
            raise error from failure
        await asyncio.sleep(pause)
