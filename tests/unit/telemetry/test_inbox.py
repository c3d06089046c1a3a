"""What a stream has received and not yet committed is bounded, and comes in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from ramet_server.serving.handlers import Unparsed
from telemetry.inbox import Inbox


class Source:
    """A stream that counts how much was read of it."""

    def __init__(self, sizes: list[int], error: Exception | None = None) -> None:
        self._sizes = sizes
        self._error = error
        self.read = 0

    async def messages(self) -> AsyncIterator[Unparsed]:
        """The messages; each parses to its number."""
        for number, size in enumerate(self._sizes):
            self.read += 1
            yield Unparsed(size, lambda number=number: number)  # type: ignore[misc]  # a lambda's default has no type
        if self._error is not None:
            raise self._error


async def _settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def _all(inbox: Inbox) -> list[int]:
    taken: list[int] = []
    while messages := await inbox.take():
        taken += [message.parse() for message in messages]
    return taken


async def test_no_more_is_read_than_there_is_room_for() -> None:
    source = Source([100] * 50)
    inbox = Inbox(source.messages(), 1000)
    inbox.open()
    await _settle()
    assert source.read == 11
    assert await _all(inbox) == list(range(50))


async def test_a_message_larger_than_all_room_passes_alone() -> None:
    source = Source([10, 5000, 10])
    inbox = Inbox(source.messages(), 1000)
    inbox.open()
    assert await _all(inbox) == [0, 1, 2]


async def test_what_came_together_is_taken_together_within_limits() -> None:
    source = Source([1] * 100)
    inbox = Inbox(source.messages(), 1000)
    inbox.open()
    await _settle()
    assert len(await inbox.take()) == 64
    assert len(await inbox.take()) == 36
    assert await inbox.take() == []


async def test_what_came_before_a_fault_is_taken_before_it_is_raised() -> None:
    inbox = Inbox(Source([1, 1], ValueError("torn")).messages(), 1000)
    inbox.open()
    await _settle()
    assert len(await inbox.take()) == 2
    with pytest.raises(ValueError, match="torn"):
        await inbox.take()


async def test_a_closed_inbox_reads_no_more() -> None:
    source = Source([100] * 50)
    inbox = Inbox(source.messages(), 1000)
    inbox.open()
    await _settle()
    inbox.close()
    await _settle()
    assert len(inbox.take_waiting()) == 10
    await _settle()
    assert source.read == 11
