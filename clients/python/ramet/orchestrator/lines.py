"""Turns of one session stand in line, turns of different sessions do not wait for each other."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

import grpc

from ramet.client import FailedPrecondition

__all__ = ["Lines"]


class _Turn:
    """A turn that stands in line or goes on; it may have been begun by a tool of another turn."""

    def __init__(self, within: "_Turn | None", line: "_Line") -> None:
        self.within = within
        self.line = line

    def and_around(self) -> "Iterator[_Turn]":
        turn: _Turn | None = self
        while turn is not None:
            yield turn
            turn = turn.within


class _Line:
    """The turns of one session."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0
        self.owner: _Turn | None = None


_current: ContextVar[_Turn | None] = ContextVar("ramet_turn", default=None)


class Lines:
    """The lines of one orchestrator; a line that nobody uses is forgotten."""

    def __init__(self) -> None:
        self._lines: dict[str, _Line] = {}
        self._waiting: set[_Turn] = set()

    def __len__(self) -> int:
        """Counts the sessions that have a turn."""
        return len(self._lines)

    @asynccontextmanager
    async def turn(self, session_id: str) -> AsyncGenerator[None, None]:
        """Waits for its place in the order of the calls, and holds it.

        Refused is a turn that could never begin, because the one before it waits, through its tools, for this one.
        """
        line = self._lines.setdefault(session_id, _Line())
        turn = _Turn(_current.get(), line)
        line.users += 1
        try:
            if self._would_wait_for_itself(turn):
                raise FailedPrecondition(
                    "The turn would wait for itself: it was begun within a turn of this session, by one of its tools.",
                    code=grpc.StatusCode.FAILED_PRECONDITION,
                    reason="TURN_IN_PROGRESS",
                )
            self._waiting.add(turn)
            try:
                await line.lock.acquire()
            finally:
                self._waiting.discard(turn)
            token = _current.set(turn)
            line.owner = turn
            try:
                yield
            finally:
                line.owner = None
                _current.reset(token)
                line.lock.release()
        finally:
            line.users -= 1
            if not line.users:
                del self._lines[session_id]

    def _would_wait_for_itself(self, turn: _Turn) -> bool:
        """Follows who waits for whom: an owner is over only when every turn is that its tools began."""
        mine = set(turn.and_around())
        seen: set[_Turn] = set()
        found = [turn.line.owner]
        while found:
            owner = found.pop()
            if owner is None or owner in seen:
                continue
            if owner in mine:
                return True
            seen.add(owner)
            found += [each.line.owner for each in self._waiting if owner in each.and_around()]
        return False
