"""The door that every call passes: it knows who is inside, and shuts for a drain."""

import asyncio
import time
from collections.abc import Callable
from typing import Self

from ramet_server.domain.errors import Draining

_RETRY_AFTER_S = 1.0
"""Long enough that a caller who comes again meets another server, or none."""

_QUIET_S = 0.2
"""Shorter than that, so that those who obey it let the door become quiet."""


class Door:
    """Admits calls while the server is fit for them; used from the loop's thread only."""

    def __init__(self, check: Callable[[], None]) -> None:
        """Takes what raises as long as calls may not begin."""
        self._check = check
        self._inside = 0
        self._empty = asyncio.Event()
        self._empty.set()
        self._shut = False
        self._knocked_at = 0.0

    def admit(self) -> Self:
        """Lets a call in, which is inside for the length of a ``with``; raises where it may not begin."""
        if self._shut:
            self._knocked_at = time.monotonic()
            raise draining()
        self._check()
        return self

    def __enter__(self) -> None:
        self._inside += 1
        self._empty.clear()

    def __exit__(self, kind: object, error: object, at: object) -> None:
        self._inside -= 1
        if not self._inside:
            self._empty.set()

    def shut(self) -> None:
        """Refuses every call from now on; those inside go on."""
        self._shut = True
        self._knocked_at = time.monotonic()

    async def wait_until_quiet(self, longest_s: float) -> None:
        """Returns once nobody has come to the shut door for a while, or after the longest time."""
        until = time.monotonic() + longest_s
        while (now := time.monotonic()) < min(self._knocked_at + _QUIET_S, until):  # noqa: ASYNC110 - no poll: it sleeps to the very moment
            await asyncio.sleep(min(self._knocked_at + _QUIET_S, until) - now)

    async def wait_until_empty(self) -> None:
        """Returns once no call is inside."""
        await self._empty.wait()


def draining() -> Draining:
    """Returns what a call gets that comes to, or stays too long in, a server that drains."""
    return Draining("The server is shutting down.", retry_after_s=_RETRY_AFTER_S)
