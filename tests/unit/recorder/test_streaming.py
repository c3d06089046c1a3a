"""What a connection does in moments that no real one can be brought to at will."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from ramet.recorder import Limits, Report
from ramet.recorder.backlog import Backlog
from ramet.recorder.drafts import Draft, Writer
from ramet.recorder.feed import Feed
from ramet.recorder.streaming import Stream
from ramet.telemetry.v1 import telemetry_pb2 as pb

EVENTS = 10


class PromptServer:
    """A channel and its call to a server whose answer is read before the writing of what it answers has returned."""

    def __init__(self) -> None:
        self.seqs: list[int] = []
        self._replies: asyncio.Queue[pb.StreamEventsResponse] = asyncio.Queue()
        self._read = asyncio.Event()
        self.all_read = asyncio.Event()
        """Whether the answer to the last of the events was dealt with."""

    def stream_stream(self, *_: object, **__: object) -> Any:
        """Opens the only call."""
        return lambda metadata: self

    async def write(self, message: bytes) -> None:
        """Answers, and returns once that was read and dealt with."""
        request = pb.StreamEventsRequest.FromString(message)
        if request.HasField("hello"):
            welcome = pb.Welcome(credit_bytes=1 << 20, max_batch_events=3)
            self._replies.put_nowait(pb.StreamEventsResponse(welcome=welcome))
            return
        self.seqs += range(request.batch.first_seq, request.batch.first_seq + len(request.batch.events))
        self._read.clear()
        self._replies.put_nowait(pb.StreamEventsResponse(ack=pb.Ack(committed_through_seq=self.seqs[-1])))
        await self._read.wait()

    async def read(self) -> pb.StreamEventsResponse:
        """Returns the next answer; that it is asked for says that the one before was dealt with."""
        self._read.set()
        if len(self.seqs) == EVENTS:
            self.all_read.set()
        return await self._replies.get()

    def cancel(self) -> None:
        """Ends the call."""


async def test_an_ack_that_is_read_before_the_writing_returns_is_of_what_was_written() -> None:
    backlog = Backlog(1 << 20, Writer("p", 1 << 20))
    for _ in range(EVENTS):
        backlog.offer("feedback", Draft("feedback", "d", 0, 100, pb.Event))
    feed, server = Feed("p", backlog, None), PromptServer()
    channel: Any = server
    running = asyncio.create_task(Stream(feed, Limits(), lambda: None).run(channel, grpc.aio.Metadata()))
    all_read = asyncio.create_task(server.all_read.wait())
    await asyncio.wait([running, all_read], timeout=10, return_when=asyncio.FIRST_COMPLETED)
    all_read.cancel()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert server.seqs == list(range(1, EVENTS + 1))
    assert backlog.report() == Report(acked=EVENTS)
