"""One connection of one producer: a stream on which its feed is sent, within the credit that the server gives."""

import asyncio
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

import grpc

from ramet.recorder.backlog import Entry
from ramet.recorder.feed import Feed
from ramet.recorder.values import Limits
from ramet.telemetry.v1 import telemetry_pb2 as pb

__all__ = ["METHOD", "Stream", "StreamFault"]

METHOD = "/ramet.telemetry.v1.Telemetry/StreamEvents"

_HELD_PARTS = 4


class StreamFault(Exception):
    """The stream is over, and why."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(f"{code.name}: {message}")
        self.code = code


class Stream:
    """An open stream. ``run`` returns when it is stopped, and raises StreamFault when the stream ends before."""

    def __init__(self, feed: Feed, limits: Limits, welcomed: Callable[[], None], *, careful: bool = False) -> None:
        """Takes what to send, and whom to tell that the server has answered.

        A ``careful`` stream sends one event at a time, to find one that ends streams.
        """
        self._welcomed = welcomed
        self.progress = False
        """Whether anything was acknowledged."""
        self._feed = feed
        self._limits = limits
        self._careful = careful
        self._changed = asyncio.Event()
        self._heard_at = monotonic()
        self._silent_until = 0.0
        self._welcome = pb.Welcome()

    def wake(self) -> None:
        """Says that there may be more to send."""
        self._changed.set()

    async def run(self, channel: grpc.aio.Channel, metadata: grpc.aio.Metadata, *, until_empty: bool = False) -> None:
        """Sends until the stream ends, or, if wanted, until the feed is empty."""
        open_stream: Any = channel.stream_stream(
            METHOD, request_serializer=None, response_deserializer=pb.StreamEventsResponse.FromString
        )
        call = open_stream(metadata=metadata)
        reader: asyncio.Task[None] | None = None
        try:
            async with asyncio.timeout(self._limits.connect_s):
                await self._open(call)
            reader = asyncio.create_task(self._read(call))
            while not (until_empty and self._feed.empty):
                if reader.done():
                    reader.result()
                await self._advance(call)
        except TimeoutError:
            raise StreamFault(grpc.StatusCode.DEADLINE_EXCEEDED, "the server is silent") from None
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as fault:
            raise await _fault(call, fault) from None
        finally:
            self._feed.disconnect()
            if reader is not None:
                reader.cancel()
                # What reading raises after the stream is over is of no use to anyone.
                await asyncio.gather(reader, return_exceptions=True)
            call.cancel()

    async def _open(self, call: Any) -> None:
        hello = pb.StreamEventsRequest(hello=pb.Hello(producer_id=self._feed.producer_id))
        await call.write(hello.SerializeToString())
        reply = await call.read()
        if reply is grpc.aio.EOF or reply.WhichOneof("step") != "welcome":
            raise await _fault(call, None)
        self._welcome = reply.welcome
        self._feed.acknowledge(self._welcome.committed_through_seq)
        self._feed.resend(self._welcome.committed_through_seq + 1)
        self._heard_at = monotonic()
        self._welcomed()

    async def _advance(self, call: Any) -> None:
        """Sends one batch, or waits for a change."""
        self._changed.clear()
        pause = self._silent_until - monotonic()
        batch = [] if pause > 0 else self._next_batch()
        if batch:
            if not self._feed.under_way_bytes:
                self._heard_at = monotonic()
            expected = self._feed.next_seq
            # Before it is written: the answer may be read before the writing has returned.
            self._feed.sent(batch)
            async with asyncio.timeout(self._limits.ack_s):
                if batch[0].seq > expected:
                    await call.write(_dropped(expected, batch[0].seq - 1))
                dropped = batch[0].event is None
                await call.write(_dropped(batch[0].seq, batch[0].last_seq) if dropped else _batch(batch))
            return
        wait_s = pause if pause > 0 else self._limits.ack_s
        if self._feed.under_way_bytes:
            wait_s = min(wait_s, self._heard_at + self._limits.ack_s - monotonic())
            if wait_s <= 0:
                raise TimeoutError
        try:
            async with asyncio.timeout(wait_s):
                await self._changed.wait()
        except TimeoutError:
            # Whether that was too long is asked above.
            return

    def _next_batch(self) -> Sequence[Entry]:
        welcome, limits = self._welcome, self._limits
        credit = min(welcome.credit_bytes or limits.batch_bytes, limits.queue_bytes // _HELD_PARTS)
        events = 1 if self._careful else min(welcome.max_batch_events or 1, limits.batch_events)
        size = min(welcome.max_batch_bytes or limits.batch_bytes, limits.batch_bytes)
        under_way = self._feed.under_way_bytes
        if under_way and (self._careful or under_way >= credit):
            return ()
        batch = self._feed.next_batch(events, size)
        # One batch may always be under way, however little credit there is.
        return () if under_way and under_way + sum(entry.size for entry in batch) > credit else batch

    async def _read(self, call: Any) -> None:
        try:
            while (reply := await call.read()) is not grpc.aio.EOF:
                self._heard_at = monotonic()
                kind = reply.WhichOneof("step")
                if kind == "ack":
                    self.progress |= self._feed.acknowledge(reply.ack.committed_through_seq, reply.ack.refusals)
                elif kind == "throttle":
                    self._silent_until = monotonic() + reply.throttle.wait_ms / 1000
                elif kind == "gap" and reply.gap.expected_seq < self._feed.next_seq:
                    self._feed.resend(reply.gap.expected_seq)
                self._changed.set()
            raise await _fault(call, None)
        finally:
            self._changed.set()


async def _fault(call: Any, cause: Exception | None) -> StreamFault:
    if isinstance(cause, grpc.aio.AioRpcError):
        return StreamFault(cause.code(), cause.details() or "")
    code = await call.code() if call.done() else grpc.StatusCode.UNAVAILABLE
    return StreamFault(code, "the server ended the stream")


def _dropped(from_seq: int, to_seq: int) -> bytes:
    dropped = pb.Dropped(from_seq=from_seq, to_seq=to_seq)
    return pb.StreamEventsRequest(dropped=dropped).SerializeToString()


def _batch(entries: Sequence[Entry]) -> bytes:
    """Writes a StreamEventsRequest around events that are serialized already."""
    batch = bytearray(pb.EventBatch(first_seq=entries[0].seq).SerializeToString())
    for entry in entries:
        event = entry.event or b""
        batch += _EVENTS + _varint(len(event)) + event
    return _BATCH + _varint(len(batch)) + bytes(batch)


def _tag(message: Any, field: str) -> bytes:
    # A length-delimited field: its number, then wire type 2.
    return _varint(message.DESCRIPTOR.fields_by_name[field].number << 3 | 2)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_EVENTS = _tag(pb.EventBatch, "events")
_BATCH = _tag(pb.StreamEventsRequest, "batch")
