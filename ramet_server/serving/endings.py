"""Calls that live on the event loop and come to an end by themselves: a drain lets them, up to its grace."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from ramet_server.domain.errors import RametError


class Ending:
    """The way to end one such call before its time; used from the loop's thread only."""

    __slots__ = ("_error", "_task")

    def __init__(self) -> None:
        self._task: asyncio.Task[object] | None = None
        self._error: RametError | None = None

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Makes the current task the call's own for the length of the block, which ends with the error of ``cut``."""
        self._task = asyncio.current_task()
        try:
            yield
        except asyncio.CancelledError:
            if self._error is None or self._task is None:
                raise
            self._task.uncancel()
            raise self._error from None
        finally:
            self._task = None

    def cut(self, error: RametError) -> None:
        """Ends the call with an error wherever it waits, be it for a client that does not read."""
        if self._task is not None and self._error is None:
            self._error = error
            self._task.cancel()
