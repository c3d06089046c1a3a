"""Feedback and self-evaluations by calls of their own, over both backends."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from ramet_server.domain.errors import InvalidField, RequestIdReused, TooLarge
from tests.telemetry import events as e
from tests.telemetry.world import World


def test_feedback_is_set_by_source_and_not_piled_up(world: World) -> None:
    world.told(e.started("e1"))
    world.say(e.USEFUL)
    world.say(e.NOT_USEFUL, comment="wrong host")
    world.say(e.USEFUL, source="reviewer")
    told = [(row["source"], row["value"], row["comment"]) for row in world.words()]
    assert told == [("reviewer", "useful", ""), ("user", "not_useful", "wrong host")]
    assert world.diagnosis()["feedback"] == "useful"


def test_feedback_before_its_diagnosis_is_held(world: World) -> None:
    said = world.say(e.NOT_USEFUL)
    assert said.HasField("updated_at")
    assert world.diagnosis()["status"] == "PENDING"
    world.told(e.started("e1", query="why"))
    found = world.diagnosis()
    assert (found["status"], found["query"], found["feedback"]) == ("RUNNING", "why", "not_useful")


def test_what_is_said_now_replaces_what_a_fast_clock_said(world: World) -> None:
    world.told(e.feedback("e1", e.USEFUL, 10**9), e.evaluation("e2", 10**9, confidence=1))
    world.say(e.NOT_USEFUL)
    world.judge(confidence=2)
    found = world.diagnosis()
    assert (found["feedback"], found["confidence"]) == ("not_useful", 2)


def test_the_same_request_again_changes_nothing(world: World) -> None:
    first = world.say(e.USEFUL, request_id="r1")
    world.say(e.NOT_USEFUL)
    assert world.say(e.USEFUL, request_id="r1") == first
    assert world.words()[0]["value"] == "not_useful"
    world.judge(request_id="r2", confidence=1)
    world.judge(confidence=2)
    assert world.judge(request_id="r2", confidence=1).confidence == 1
    assert world.diagnosis()["confidence"] == 2


def test_a_request_id_with_another_body_is_refused(world: World) -> None:
    world.say(e.USEFUL, request_id="r1")
    with pytest.raises(RequestIdReused):
        world.say(e.NOT_USEFUL, request_id="r1")
    with pytest.raises(RequestIdReused):
        world.judge(request_id="r1", confidence=1)


def test_a_self_evaluation_replaces_the_earlier_one_whole(world: World) -> None:
    world.judge(confidence=95, reasoning="sure 😀", evidence_count=3)
    world.judge(confidence=10, tools_proposed=4, tools_accepted=0)
    found = world.diagnosis()
    assert json.loads(found["self_evaluation"]) == {"confidence": 10, "tools_proposed": 4, "tools_accepted": 0}
    assert found["confidence"] == 10


def test_bad_words_are_refused_by_field(world: World) -> None:
    for field, say in (
        ("feedback.value", lambda: world.say(0)),  # type: ignore[arg-type]  # not given
        ("feedback.source", lambda: world.say(e.USEFUL, source="")),
        ("session_id", lambda: world.say(e.USEFUL, session_id="")),
        ("self_evaluation.confidence", lambda: world.judge(confidence=101)),
        ("self_evaluation.evidence_count", lambda: world.judge(evidence_count=-1)),
        ("session_id", lambda: world.judge(session_id=" ")),
    ):
        with pytest.raises(InvalidField) as refusal:
            say()
        assert refusal.value.field == field
    with pytest.raises(TooLarge):
        world.say(e.USEFUL, comment="x" * 4097)
    assert world.words() == []


def test_sources_that_speak_at_once_are_all_heard(world: World) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: world.say(e.USEFUL, source=f"s{n % 4}"), range(16)))
    assert [row["source"] for row in world.words()] == ["s0", "s1", "s2", "s3"]


def test_a_later_word_wins_whatever_order_it_comes_in(world: World) -> None:
    world.told(e.feedback("e2", e.NOT_USEFUL, 5))
    world.told(e.feedback("e1", e.USEFUL, 4))
    assert world.words()[0]["value"] == world.diagnosis()["feedback"] == "not_useful"
    assert world.words()[0]["updated_at"].timestamp() == e.START + 5
    assert world.clock.ahead == timedelta(0)
