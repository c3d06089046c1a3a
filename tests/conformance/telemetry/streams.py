"""Events as a stream: acknowledged after their commit, contiguous per producer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import grpc

from ramet.telemetry.v1.telemetry_pb2_grpc import TelemetryStub
from tests.conformance.backends import Backend
from tests.conformance.calling import within
from tests.conformance.telemetry.making import get, steps
from tests.telemetry import events as e
from tests.telemetry.teller import Teller


class TestEventStreams:
    def test_an_ack_comes_after_the_commit_and_names_what_was_refused(
        self, backend: Backend, space: str, telemetry: TelemetryStub
    ) -> None:
        teller = Teller(within(backend.channel, space))
        assert (teller.welcome.committed_through_seq, teller.welcome.max_batch_events) == (0, 1000)
        (refusal,) = teller.tell(1, e.step_completed("e1", "a"), e.step_completed("e2", "b", status=99))
        assert (refusal.seq, refusal.event_id, refusal.field) == (2, "e2", "step_completed.status")
        assert [step.step_key for step in steps(telemetry)] == ["a"]
        teller.close()

    def test_a_gap_is_answered_with_the_seq_expected(self, backend: Backend, space: str) -> None:
        teller = Teller(within(backend.channel, space))
        teller.send(3, e.step_completed("e3", "c"))
        assert teller.read("ack").committed_through_seq == 0
        assert teller.read("gap").expected_seq == 1
        teller.drop(1, 2)
        teller.read_through(2)
        teller.tell(3, e.step_completed("e3", "c"))
        teller.close()
        assert Teller(within(backend.channel, space)).welcome.committed_through_seq == 3

    def test_what_is_sent_again_changes_nothing(self, backend: Backend, space: str, telemetry: TelemetryStub) -> None:
        """otel-collector#11056: cut after commit before the ack; resend -> rows and totals unchanged."""
        first = Teller(within(backend.channel, space))
        first.tell(1, *e.steps(3))
        first.leave()
        before = get(telemetry)
        again = Teller(within(backend.channel, space))
        assert again.tell(1, *e.steps(3)) == []
        assert get(telemetry) == before

    def test_the_newest_stream_of_a_producer_wins(self, backend: Backend, space: str) -> None:
        older, newer = Teller(within(backend.channel, space)), Teller(within(backend.channel, space))
        older.send(1, e.step_completed("e1", "a"))
        assert older.end() == (grpc.StatusCode.ABORTED, "PRODUCER_REPLACED")
        newer.tell(1, e.step_completed("e1", "a"))

    def test_twelve_producers_lose_nothing(self, backend: Backend, space: str, telemetry: TelemetryStub) -> None:
        """teletrace#962: 12 producers -> 0 lost."""

        def produce(number: int) -> None:
            teller = Teller(within(backend.channel, space), f"producer-{number}")
            teller.tell_all(e.split(e.steps(40, prefix=f"p{number}-"), [10, 10, 10]))
            teller.close()

        with ThreadPoolExecutor(12) as threads:
            list(threads.map(produce, range(12)))
        assert get(telemetry).step_count == len(steps(telemetry)) == 480
