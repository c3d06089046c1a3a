"""Calls that would never end by themselves, such as watches: a drain ends them."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from ramet_server.serving.door import draining


class LongCalls:
    """The open calls that live on the event loop; used from the loop's thread only."""

    def __init__(self) -> None:
        self._open: set[asyncio.Task[object]] = set()
        self._ended: set[asyncio.Task[object]] = set()
        self._draining = False

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Marks the current task as a long call for the length of the block.

        The block ends with Draining when the server drains, and does not begin once it does.
        """
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("A long call must run in a task.")
        if self._draining:
            raise draining()
        self._open.add(task)
        try:
            yield
        except asyncio.CancelledError:
            if task not in self._ended:
                raise
            task.uncancel()
            raise draining() from None
        finally:
            self._open.discard(task)
            self._ended.discard(task)

    def drain(self) -> None:
        """Ends every long call, now and from now on, so that clients go to another server."""
        self._draining = True
        for task in self._open:
            self._ended.add(task)
            task.cancel()
