"""A stream of events as a client opens it, a message at a time."""

from __future__ import annotations

import queue
from collections.abc import Sequence
from typing import Any

import grpc

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet.telemetry.v1.telemetry_pb2_grpc import TelemetryStub
from tests.conformance.refusing import told_by


class Teller:
    """One open stream of a producer; its Hello is sent, and its Welcome read."""

    def __init__(self, channel: grpc.Channel, producer_id: str = "p", timeout: float = 60) -> None:
        self._queue: queue.SimpleQueue[pb.StreamEventsRequest | None] = queue.SimpleQueue()
        self.hello(producer_id)
        self.call: Any = TelemetryStub(channel).StreamEvents(iter(self._queue.get, None), timeout=timeout)
        self.welcome = self.read("welcome")

    def hello(self, producer_id: str) -> None:
        """Sends a Hello."""
        self._queue.put(pb.StreamEventsRequest(hello=pb.Hello(producer_id=producer_id)))

    def send(self, first_seq: int, *events: pb.Event) -> None:
        """Sends a batch."""
        self._queue.put(pb.StreamEventsRequest(batch=pb.EventBatch(first_seq=first_seq, events=events)))

    def drop(self, from_seq: int, to_seq: int) -> None:
        """Gives events up."""
        self._queue.put(pb.StreamEventsRequest(dropped=pb.Dropped(from_seq=from_seq, to_seq=to_seq)))

    def read(self, kind: str) -> Any:
        """Returns what comes next, which must be of this kind."""
        reply: pb.StreamEventsResponse = next(self.call)
        assert reply.WhichOneof("step") == kind, reply
        return getattr(reply, kind)

    def read_through(self, seq: int) -> list[pb.Refusal]:
        """Reads Acks until the seq is committed; returns what was refused."""
        refusals: list[pb.Refusal] = []
        while True:
            ack = self.read("ack")
            refusals += ack.refusals
            if ack.committed_through_seq >= seq:
                return refusals

    def tell(self, first_seq: int, *events: pb.Event) -> list[pb.Refusal]:
        """Sends a batch and reads until it is committed."""
        self.send(first_seq, *events)
        return self.read_through(first_seq + len(events) - 1)

    def tell_all(self, batches: Sequence[Sequence[pb.Event]], first_seq: int = 1) -> None:
        """Sends batches without waiting, then reads until all are committed; nothing may be refused."""
        for batch in batches:
            self.send(first_seq, *batch)
            first_seq += len(batch)
        assert self.read_through(first_seq - 1) == []

    def close(self) -> None:
        """Ends the stream as a client does that has told everything."""
        self._queue.put(None)
        for reply in self.call:
            raise AssertionError(f"not expected any more: {reply}")
        assert self.call.code() is grpc.StatusCode.OK

    def leave(self) -> None:
        """Cuts the stream."""
        self.call.cancel()
        self._queue.put(None)

    def end(self) -> tuple[grpc.StatusCode, str]:
        """Reads to the end; returns the status and reason with which the server ended the stream."""
        try:
            for _ in self.call:
                pass
        except grpc.RpcError as error:
            self._queue.put(None)
            told = told_by(error)
            return told.code, told.reason
        raise AssertionError("the stream ended well")
