"""Events at the unary door: each by itself, each once, whatever its neighbours are."""

from __future__ import annotations

import pytest

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet.telemetry.v1.telemetry_pb2_grpc import TelemetryStub
from tests.conformance.backends import Backend
from tests.conformance.refusing import bad_field, too_large
from tests.conformance.telemetry.making import get, steps, tell
from tests.telemetry import events as e


class TestEvents:
    def test_a_refused_event_never_blocks_its_neighbours(self, telemetry: TelemetryStub) -> None:
        """future-agi#1028: NaN in one event -> that event refused with its field; its neighbours stored."""
        events = [
            e.step_completed("e1", "a"),
            e.step_completed("e2", "b", model_output_json='{"x": NaN}'),
            e.step_completed("e3", "c"),
        ]
        reply = telemetry.AppendEvents(pb.AppendEventsRequest(events=events))
        (refusal,) = reply.refusals
        assert (refusal.event_id, refusal.reason) == ("e2", "INVALID_FIELD")
        assert refusal.field == "step_completed.model_output_json"
        assert reply.accepted == 2
        assert [step.step_key for step in steps(telemetry)] == ["a", "c"]

    def test_a_duplicate_changes_nothing(self, telemetry: TelemetryStub) -> None:
        """otel-collector#11056, langfuse-python#1803: sent again -> rows and totals unchanged."""
        events = [e.started("e1"), *e.steps(3), e.tool("e2", "t"), e.completed("e3")]
        tell(telemetry, *events, events[1])
        before = get(telemetry), list(steps(telemetry))
        tell(telemetry, *events)
        assert (get(telemetry), list(steps(telemetry))) == before
        assert (before[0].step_count, before[0].tool_call_count, before[0].total_token_count) == (3, 1, 33)

    def test_another_body_under_a_known_id_is_a_conflict_and_the_first_stays(self, telemetry: TelemetryStub) -> None:
        tell(telemetry, e.step_completed("e1", "a", thought="first"))
        request = pb.AppendEventsRequest(events=[e.step_completed("e1", "a", thought="second"), e.started("e2")])
        reply = telemetry.AppendEvents(request)
        assert [(each.event_id, each.reason, each.field) for each in reply.refusals] == [
            ("e1", "EVENT_CONFLICT", "event_id")
        ]
        assert reply.accepted == 1
        assert steps(telemetry)[0].thought == "first"

    def test_an_over_large_event_is_refused_alone(self, telemetry: TelemetryStub) -> None:
        huge = e.step_completed("e1", "a", thought="x" * (5 * 1024 * 1024))
        reply = telemetry.AppendEvents(pb.AppendEventsRequest(events=[huge, e.step_completed("e2", "b")]))
        assert [(each.reason, each.field) for each in reply.refusals] == [("TOO_LARGE", "step_completed.thought")]
        assert [step.step_key for step in steps(telemetry)] == ["b"]

    @pytest.mark.parametrize("count", [0, 1001])
    def test_a_batch_holds_one_to_a_thousand_events(self, telemetry: TelemetryStub, count: int) -> None:
        with too_large(1000, names="events") if count else bad_field("events"):
            telemetry.AppendEvents(pb.AppendEventsRequest(events=e.steps(count)))

    def test_a_preview_is_500_characters_and_the_length_is_the_whole(self, telemetry: TelemetryStub) -> None:
        """mlflow#24123, langfuse#1631: an emoji across character 500 -> valid, at most 500, the full length kept."""
        preview = "x" * 499 + "\U0001f600" + "y" * 100
        tell(telemetry, e.tool("e1", "t", output_preview=preview, output_length=5_000_000, is_truncated=True))
        (tool,) = telemetry.ListToolInvocations(pb.ListToolInvocationsRequest()).invocations
        assert tool.output_preview == "x" * 499 + "\U0001f600"
        assert (tool.output_length, tool.is_truncated) == (5_000_000, True)

    def test_only_tables_of_telemetry_hold_what_was_told(self, telemetry: TelemetryStub, backend: Backend) -> None:
        tell(telemetry, e.step_completed("e1", "a", thought="secret-of-one-test"))
        assert backend.tables_holding("secret-of-one-test") == {"agent_step"}
