"""A real gRPC server that speaks the contract of a stream of events, keeps what it takes, and misbehaves on demand."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

import grpc

from ramet.telemetry.v1 import telemetry_pb2 as pb


class TakingServer:
    """Keeps what it takes over its restarts, as a database would."""

    def __init__(self) -> None:
        self.events: list[pb.Event] = []
        self.spaces: set[str] = set()
        self.dropped = 0
        self.committed: dict[str, int] = defaultdict(int)
        self.batches: list[int] = []
        self.sizes: list[int] = []
        """Bytes of the events of each batch."""
        self.refused: dict[str, str] = {}
        """Which events to refuse, by their tool or agent, and why."""
        self.delay_s = 0.0
        """How long each commit takes."""
        self.lose_acks = 0
        """How many commits are followed by the end of the stream instead of an Ack."""
        self.throttles = 0
        """How many batches are answered with a Throttle first."""
        self.gaps = 0
        """How many batches are taken for a gap first."""
        self.senseless = ""
        """A batch with this agent ends the stream with INVALID_ARGUMENT."""
        self.credit_bytes = 1 << 20
        self.max_batch_events = 100
        self.port = 0
        self._seen: set[str] = set()
        self._lock = threading.Lock()
        self._pause = threading.Event()
        self._server: grpc.Server | None = None

    @property
    def address(self) -> str:
        """Where it listens, or will again."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listens, on the same port as before."""
        server = grpc.server(ThreadPoolExecutor(16), options=[("grpc.so_reuseport", 1)])
        handler = grpc.stream_stream_rpc_method_handler(
            self.StreamEvents, pb.StreamEventsRequest.FromString, pb.StreamEventsResponse.SerializeToString
        )
        service = grpc.method_handlers_generic_handler("ramet.telemetry.v1.Telemetry", {"StreamEvents": handler})
        server.add_generic_rpc_handlers((service,))
        self.port = server.add_insecure_port(f"127.0.0.1:{self.port}")
        server.start()
        self._server = server

    def stop(self) -> None:
        """Cuts everything."""
        if self._server is not None:
            self._server.stop(0).wait()
            self._server = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def StreamEvents(
        self, request_iterator: Iterator[pb.StreamEventsRequest], context: Any
    ) -> Iterator[pb.StreamEventsResponse]:
        """Takes events."""
        self.spaces.add(dict(context.invocation_metadata()).get("ramet-space", ""))
        producer = next(request_iterator).hello.producer_id
        yield pb.StreamEventsResponse(
            welcome=pb.Welcome(
                committed_through_seq=self.committed[producer],
                credit_bytes=self.credit_bytes,
                max_batch_bytes=1 << 20,
                max_batch_events=self.max_batch_events,
            )
        )
        for request in request_iterator:
            yield from self._answers(producer, request, context)

    def _answers(
        self, producer: str, request: pb.StreamEventsRequest, context: Any
    ) -> Iterator[pb.StreamEventsResponse]:
        first, events = request.batch.first_seq, list(request.batch.events)
        last = first + len(events) - 1
        if request.WhichOneof("step") == "dropped":
            first, last = request.dropped.from_seq, request.dropped.to_seq
        if any(self.senseless and event.step_started.agent_name == self.senseless for event in events):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "senseless")
        if self.throttles:
            self.throttles -= 1
            yield pb.StreamEventsResponse(throttle=pb.Throttle(wait_ms=50))
        if self.delay_s:
            self._pause.wait(self.delay_s)
        expected = self.committed[producer] + 1
        if first > expected or self.gaps:
            self.gaps = max(0, self.gaps - 1)
            yield pb.StreamEventsResponse(gap=pb.Gap(expected_seq=expected))
            return
        refusals = []
        with self._lock:
            if not events:
                self.dropped += last - first + 1
            else:
                self.batches.append(len(events))
                self.sizes.append(sum(event.ByteSize() for event in events))
            for seq, event in enumerate(events, first):
                reason = self.refused.get(event.step_started.agent_name or event.tool_completed.tool_name)
                if reason:
                    refusals.append(pb.Refusal(seq=seq, event_id=event.event_id, reason=reason, field="somewhere"))
                elif event.event_id not in self._seen:
                    self._seen.add(event.event_id)
                    self.events.append(event)
            self.committed[producer] = max(last, self.committed[producer])
        if self.lose_acks:
            self.lose_acks -= 1
            context.abort(grpc.StatusCode.UNAVAILABLE, "cut before the ack")
        yield pb.StreamEventsResponse(ack=pb.Ack(committed_through_seq=self.committed[producer], refusals=refusals))

    def kinds(self) -> list[str]:
        """Returns the kinds of what was taken, in order."""
        return [str(event.WhichOneof("body")) for event in self.events]

    def queries(self) -> list[str]:
        """Returns the questions of the diagnoses that were taken, in order."""
        return [event.diagnosis_started.query for event in self.events if event.HasField("diagnosis_started")]
