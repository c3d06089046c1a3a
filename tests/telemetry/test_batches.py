"""Batches at the unary door, over both backends."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from sqlalchemy import event

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet_server.domain.errors import InvalidField, TooLarge
from tests.telemetry import events as e
from tests.telemetry.world import World, refused


def test_a_duplicate_inside_a_batch_leaves_the_others_stored(world: World) -> None:
    first = e.step_completed("e1", "a")
    reply = world.tell(first, first, e.step_completed("e2", "b"))
    assert (reply.accepted, refused(reply)) == (3, [])
    assert [row["step_key"] for row in world.steps()] == ["a", "b"]


def test_the_same_event_again_changes_nothing(world: World) -> None:
    batch = [e.started("e1", query="why"), *e.steps(3), e.tool("e2", "t"), e.feedback("e3", e.USEFUL)]
    world.told(*batch)
    before = world.everything(), world.diagnosis()["updated_at"]
    world.told(*batch)
    assert (world.everything(), world.diagnosis()["updated_at"]) == before


def test_another_event_under_a_known_id_is_a_conflict_and_the_first_stays(world: World) -> None:
    world.told(e.step_completed("e1", "a", thought="first"))
    reply = world.tell(e.step_completed("e1", "a", thought="second"), e.step_completed("e2", "b"))
    assert (reply.accepted, refused(reply)) == (1, [("e1", "EVENT_CONFLICT", "event_id")])
    assert [row["thought"] for row in world.steps()] == ["first", None]


def test_a_conflict_within_a_batch_keeps_the_first(world: World) -> None:
    reply = world.tell(e.step_completed("e1", "a", thought="1"), e.step_completed("e1", "a", thought="2"))
    assert refused(reply) == [("e1", "EVENT_CONFLICT", "event_id")]
    assert world.steps()[0]["thought"] == "1"


def test_a_refused_event_leaves_no_trace_of_its_diagnosis(world: World) -> None:
    world.told(e.started("e1"))
    world.tell(e.started("e1", session_id="other"), e.step_started("e2", "a", session_id="third", step_index=-1))
    assert world.diagnosis()["session_id"] == "d"


def test_nan_in_one_event_refuses_that_one_with_its_field(world: World) -> None:
    reply = world.tell(
        e.step_completed("e1", "a", model_output_json='{"x": 1}'),
        e.step_completed("e2", "b", model_output_json='{"x": NaN}'),
        e.step_completed("e3", "c", model_output_json='{"x": 2}'),
    )
    assert refused(reply) == [("e2", "INVALID_FIELD", "step_completed.model_output_json")]
    assert [row["step_key"] for row in world.steps()] == ["a", "c"]


_LONG = "x" * (64 * 1024 + 1)
_DEEP = "[" * 32 + "]" * 32


_NEWER: Any = 9
"""A value of a newer client."""


def _used(**tokens: int) -> pb.Event:
    return e.step_completed("e1", "a", usage=pb.Usage(**tokens))


def _looked_up(**found: Any) -> pb.Event:
    return e.tool("e1", "t", retrieval=pb.Retrieval(**found))


WRONG = [
    (e.started("", query="q"), "INVALID_FIELD", "event_id"),
    (e.started("e" * 129), "TOO_LARGE", "event_id"),
    (e.started("e1", session_id=""), "INVALID_FIELD", "session_id"),
    (e.started("e1", session_id=" d"), "INVALID_FIELD", "session_id"),
    (pb.Event(event_id="e1", session_id="d", occurred_at=e.at(0)), "INVALID_FIELD", "body"),
    (pb.Event(event_id="e1", session_id="d", diagnosis_started=pb.DiagnosisStarted()), "INVALID_FIELD", "occurred_at"),
    (e.started("e1", started_at=Timestamp(nanos=-1)), "INVALID_FIELD", "diagnosis_started.started_at"),
    (e.started("e1", query=_LONG), "TOO_LARGE", "diagnosis_started.query"),
    (e.started("e1", query="a\0b"), "INVALID_FIELD", "diagnosis_started.query"),
    (e.started("e1", agent_flow="x" * 33), "TOO_LARGE", "diagnosis_started.agent_flow"),
    (e.started("e1", conversation_id=" "), "INVALID_FIELD", "diagnosis_started.conversation_id"),
    (e.completed("e1", status=0), "INVALID_FIELD", "diagnosis_completed.status"),
    (e.completed("e1", status=pb.RUN_STATUS_RUNNING), "INVALID_FIELD", "diagnosis_completed.status"),
    (e.completed("e1", status=99), "INVALID_FIELD", "diagnosis_completed.status"),
    (e.completed("e1", error_message="x" * 4097), "TOO_LARGE", "diagnosis_completed.error_message"),
    (e.step_started("e1", ""), "INVALID_FIELD", "step_started.step_key"),
    (e.step_started("e1", "a", step_index=-1), "INVALID_FIELD", "step_started.step_index"),
    (e.step_started("e1", "a", agent_name=" "), "INVALID_FIELD", "step_started.agent_name"),
    (e.step_started("e1", "a", model_input_json="{"), "INVALID_FIELD", "step_started.model_input_json"),
    (e.step_started("e1", "a", model_input_json=_DEEP), "INVALID_FIELD", "step_started.model_input_json"),
    (e.step_started("e1", "a", model="m" * 257), "TOO_LARGE", "step_started.model"),
    (e.step_completed("e1", "a", status=99), "INVALID_FIELD", "step_completed.status"),
    (e.step_completed("e1", "a", thought=_LONG), "TOO_LARGE", "step_completed.thought"),
    (
        e.step_completed("e1", "a", usage=pb.Usage(input_tokens=-1)),
        "INVALID_FIELD",
        "step_completed.usage.input_tokens",
    ),
    (
        e.step_completed("e1", "a", usage=pb.Usage(cost_micros=2**62)),
        "INVALID_FIELD",
        "step_completed.usage.cost_micros",
    ),
    (_used(input_tokens=1, cached_tokens=2), "INVALID_FIELD", "step_completed.usage.cached_tokens"),
    (e.tool("e1", ""), "INVALID_FIELD", "tool_completed.invocation_key"),
    (e.tool("e1", "t", tool_name=""), "INVALID_FIELD", "tool_completed.tool_name"),
    (e.tool("e1", "t", input_params_json="1e400"), "INVALID_FIELD", "tool_completed.input_params_json"),
    (e.tool("e1", "t", output_length=-1), "INVALID_FIELD", "tool_completed.output_length"),
    (e.tool("e1", "t", output_preview="a\0"), "INVALID_FIELD", "tool_completed.output_preview"),
    (e.tool("e1", "t", retrieval=pb.Retrieval(layer=_NEWER)), "INVALID_FIELD", "tool_completed.retrieval.layer"),
    (
        e.tool("e1", "t", retrieval=pb.Retrieval(details_json="nan")),
        "INVALID_FIELD",
        "tool_completed.retrieval.details_json",
    ),
    (e.evaluation("e1", confidence=101), "INVALID_FIELD", "self_evaluation.confidence"),
    (e.evaluation("e1", confidence=-1), "INVALID_FIELD", "self_evaluation.confidence"),
    (e.evaluation("e1", tools_proposed=1, tools_accepted=2), "INVALID_FIELD", "self_evaluation.tools_accepted"),
    (e.feedback("e1", pb.FEEDBACK_VALUE_UNSPECIFIED), "INVALID_FIELD", "feedback.value"),
    (e.feedback("e1", _NEWER), "INVALID_FIELD", "feedback.value"),
    (e.feedback("e1", e.USEFUL, source=""), "INVALID_FIELD", "feedback.source"),
    (e.feedback("e1", e.USEFUL, comment="x" * 4097), "TOO_LARGE", "feedback.comment"),
]


@pytest.mark.parametrize(
    ("wrong", "reason", "field"), WRONG, ids=[f"{field}-{n}" for n, (_, _, field) in enumerate(WRONG)]
)
def test_what_is_wrong_with_an_event_is_told_by_its_field(
    world: World, wrong: pb.Event, reason: str, field: str
) -> None:
    reply = world.tell(e.step_completed("good", "g"), wrong)
    assert (reply.accepted, refused(reply)) == (1, [(wrong.event_id[:128], reason, field)])
    assert [row["step_key"] for row in world.steps()] == ["g"]


def test_json_as_deep_as_the_limit_is_kept(world: World) -> None:
    deepest = "[" * 31 + "]" * 31
    world.told(e.step_completed("e1", "a", model_output_json=deepest))
    assert world.steps()[0]["model_output"] == deepest


def test_an_over_large_event_is_refused_alone_and_its_size_does_not_count(world: World) -> None:
    huge = e.step_completed("e1", "a", thought="x" * (5 * 1024 * 1024))
    reply = world.tell(huge, e.step_completed("e2", "b"))
    assert refused(reply) == [("e1", "TOO_LARGE", "step_completed.thought")]


def test_a_batch_has_limits(world: World) -> None:
    with pytest.raises(InvalidField):
        world.tell()
    with pytest.raises(TooLarge):
        world.tell(*e.steps(1001))
    with pytest.raises(TooLarge):
        world.tell(*(e.step_completed(f"e{n}", f"s{n}", thought="x" * 60_000) for n in range(80)))
    assert world.steps() == []


def test_a_thousand_events_of_many_diagnoses_take_as_few_statements_as_ten(world: World) -> None:
    def counted(count: int, prefix: str) -> int:
        seen: list[str] = []
        note = lambda _c, _cursor, statement, _p, _x, _many: seen.append(statement)  # noqa: E731 - SQLAlchemy wants a function of these
        event.listen(world.database.engine, "before_cursor_execute", note)
        try:
            batch = [
                told
                for n in range(count)
                for told in (
                    e.step_completed(f"{prefix}s{n}", f"s{n}", session_id=f"{prefix}{n // 5}"),
                    e.tool(f"{prefix}t{n}", f"t{n}", session_id=f"{prefix}{n // 5}", step_key=f"s{n}"),
                    e.feedback(f"{prefix}f{n}", e.USEFUL, session_id=f"{prefix}{n // 5}"),
                    e.evaluation(f"{prefix}v{n}", confidence=50, session_id=f"{prefix}{n // 5}"),
                )
            ]
            world.told(*batch)
        finally:
            event.remove(world.database.engine, "before_cursor_execute", note)
        return len(seen)

    few = counted(3, "a")
    assert counted(250, "b") == few
    assert few < 25


def test_names_lose_the_spaces_around_them(world: World) -> None:
    world.told(e.started("e1", agent_flow=" CHAT "), e.step_completed("e2", "a", agent_name=" planner "))
    assert (world.diagnosis()["agent_flow"], world.steps()[0]["agent_name"]) == ("CHAT", "planner")


def test_writers_that_meet_at_one_diagnosis_lose_nothing(world: World) -> None:
    def write(writer: int) -> None:
        for batch in range(5):
            world.told(*(e.step_completed(f"{writer}-{batch}-{n}", f"{writer}-{batch}-{n}") for n in range(3)))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(8)))
    assert world.diagnosis()["step_count"] == len(world.steps()) == 120


def test_the_same_batch_by_many_at_once_is_taken_once(world: World) -> None:
    batch = [e.started("e1"), *e.steps(5), e.tool("t", "t", step_key="s1")]
    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(lambda _: world.tell(*batch), range(16)))
    assert {(reply.accepted, len(reply.refusals)) for reply in replies} == {(7, 0)}
    assert (world.diagnosis()["step_count"], world.diagnosis()["total_token_count"]) == (5, 55)
