"""The event loop of the sender's thread, which shares gRPC's events with every other loop of the process."""

import asyncio
import contextvars
import logging
from collections.abc import Callable
from typing import Any, TypeVarTuple

__all__ = ["new_loop"]

_Ts = TypeVarTuple("_Ts")

_log = logging.getLogger("ramet.recorder")


class _Loop(asyncio.SelectorEventLoop):
    """A loop that may be told of something after it was closed.

    ``grpc.aio`` has one queue of events for all loops of a process. Whichever loop wakes first passes the others
    theirs: so also the end of a call that was cancelled just before its loop was closed. The base class raises then,
    and the innocent loop prints it.
    """

    def call_soon_threadsafe(
        self, callback: Callable[[*_Ts], object], *args: *_Ts, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """Calls back soon; once closed, never."""
        try:
            return super().call_soon_threadsafe(callback, *args, context=context)
        except RuntimeError:
            if not self.is_closed():
                raise
            handle = asyncio.Handle(callback, args, self, context)
            handle.cancel()
            return handle


def new_loop() -> asyncio.AbstractEventLoop:
    """Makes a loop that prints nothing of other loops' ends."""
    # It keeps the context that it was made in: that of an agent would keep its diagnosis, and so the recorder.
    loop = contextvars.Context().run(_Loop)
    loop.set_exception_handler(_heard)
    return loop


def _heard(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    # An application may have closed its own loop with calls under way, and this one was to pass their end on.
    if isinstance(context.get("exception"), RuntimeError) and "PollerCompletionQueue" in repr(context.get("handle")):
        _log.debug("A loop of this process was closed with calls of gRPC under way.")
        return
    loop.default_exception_handler(context)
