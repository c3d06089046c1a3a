"""The door that every call passes: it knows who is inside, and shuts for a drain."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ramet_server.domain.errors import Draining

_RETRY_AFTER_S = 1.0
"""Long enough that a caller who comes again meets another server, or none."""


class Door:
    """Admits calls while the server is fit for them; used from the loop's thread only."""

    def __init__(self, check: Callable[[], None]) -> None:
        """Takes what raises as long as calls may not begin."""
        self._check = check
        self._inside = 0
        self._empty = asyncio.Event()
        self._empty.set()
        self._shut = False

    @contextmanager
    def admit(self) -> Iterator[None]:
        """Counts a call as inside for the length of the block; raises where it may not begin."""
        if self._shut:
            raise draining()
        self._check()
        self._inside += 1
        self._empty.clear()
        try:
            yield
        finally:
            self._inside -= 1
            if not self._inside:
                self._empty.set()

    def shut(self) -> None:
        """Refuses every call from now on; those inside go on."""
        self._shut = True

    async def wait_until_empty(self) -> None:
        """Returns once no call is inside."""
        await self._empty.wait()


def draining() -> Draining:
    """Returns what a call gets that comes to, or stays too long in, a server that drains."""
    return Draining("The server is shutting down.", retry_after_s=_RETRY_AFTER_S)
