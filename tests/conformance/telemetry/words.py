"""Feedback and self-evaluations: by RPC or as events, one per source, once per request_id."""

from __future__ import annotations

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet.telemetry.v1.telemetry_pb2_grpc import TelemetryStub
from tests.conformance.refusing import bad_field, reused_request_id
from tests.conformance.telemetry.making import get, listed, tell
from tests.telemetry import events as e


def _say(
    telemetry: TelemetryStub, value: pb.FeedbackValue.ValueType, source: str = "user", once: str = ""
) -> pb.Feedback:
    said = pb.Feedback(source=source, value=value)
    return telemetry.PutFeedback(pb.PutFeedbackRequest(session_id="d", feedback=said, request_id=once))


class TestWords:
    def test_feedback_is_set_by_source_and_not_piled_up(self, telemetry: TelemetryStub) -> None:
        """langfuse#5686: feedback is set by (session, source), not piled up."""
        tell(telemetry, e.started("e1"))
        for value in (e.USEFUL, e.NOT_USEFUL):
            _say(telemetry, value)
        _say(telemetry, e.USEFUL, "reviewer")
        assert [(each.source, each.value) for each in get(telemetry).feedback] == [
            ("reviewer", e.USEFUL),
            ("user", e.NOT_USEFUL),
        ]
        assert listed(telemetry, feedback=e.USEFUL) == ["d"]

    def test_words_before_their_diagnosis_are_held_for_it(self, telemetry: TelemetryStub) -> None:
        """langfuse#5686: feedback that comes before its session is held."""
        _say(telemetry, e.USEFUL)
        telemetry.PutSelfEvaluation(
            pb.PutSelfEvaluationRequest(session_id="d", self_evaluation=pb.SelfEvaluation(confidence=70))
        )
        tell(telemetry, e.started("e1", query="late"))
        found = get(telemetry)
        assert (found.query, found.self_evaluation.confidence) == ("late", 70)
        assert [each.value for each in found.feedback] == [e.USEFUL]

    def test_the_same_request_id_changes_nothing_again(self, telemetry: TelemetryStub) -> None:
        first = _say(telemetry, e.USEFUL, once="r1")
        _say(telemetry, e.NOT_USEFUL)
        assert _say(telemetry, e.USEFUL, once="r1") == first
        assert get(telemetry).feedback[0].value == e.NOT_USEFUL
        with reused_request_id():
            _say(telemetry, e.NOT_USEFUL, once="r1")

    def test_words_outside_their_values_are_refused_by_field(self, telemetry: TelemetryStub) -> None:
        with bad_field("feedback.value"):
            _say(telemetry, pb.FEEDBACK_VALUE_UNSPECIFIED)
        for confidence in (-1, 101):
            with bad_field("self_evaluation.confidence"):
                telemetry.PutSelfEvaluation(
                    pb.PutSelfEvaluationRequest(
                        session_id="d", self_evaluation=pb.SelfEvaluation(confidence=confidence)
                    )
                )
        assert listed(telemetry) == []
