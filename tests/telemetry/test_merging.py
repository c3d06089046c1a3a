"""Any order of arrival ends in the same rows: through the whole service, on both backends."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet_server.domain.ids import new_id
from tests.telemetry import events as e
from tests.telemetry.world import World, sizes

STORY = [
    e.started("e01", 0, query="why is it slow?", agent_flow="AI_OPS", conversation_id="main"),
    e.step_started("e02", "sup", 1, agent_name="supervisor", model_input_json='[{"role": "user"}]', model="m1"),
    e.step_started("e03", "sub", 2, parent_step_key="sup", step_index=1, agent_name="executor"),
    e.tool("e04", "t1", 3, step_key="sub", output_preview="x", output_length=1, duration_ms=5),
    e.tool("e05", "t2", 4, step_key="sub", success=False, error_message="no route"),
    e.tool("e06", "t3", 4, step_key="never"),
    e.step_completed("e07", "sub", 5, step_index=1, agent_name="executor", usage=pb.Usage(output_tokens=3)),
    # A second end of one step, and a third, at the same moment: FAILED stands.
    e.step_completed("e08", "sub", 5, step_index=1, agent_name="executor", status=e.CANCELLED, thought="hm"),
    e.step_completed("e09", "sub", 5, step_index=1, agent_name="executor", status=e.FAILED, error_message="boom"),
    e.step_completed(
        "e10", "sup", 6, agent_name="supervisor", duration_ms=77, usage=pb.Usage(input_tokens=5, output_tokens=2)
    ),
    e.step_started("e11", "sup", 6.5, agent_name="late", model="m0", provider="p"),
    e.evaluation("e12", 7, confidence=40),
    e.evaluation("e13", 7.5, confidence=90, tools_proposed=3, tools_accepted=2),
    e.completed("e14", 8, status=e.FAILED, error_message="it failed"),
    e.completed("e15", 9, status=e.SUCCESS),
    e.feedback("e16", e.USEFUL, 10),
    e.feedback("e17", e.NOT_USEFUL, 11, comment="no"),
    e.feedback("e18", e.USEFUL, 10.5, source="reviewer"),
    e.tool("e19", "t1", 3.5, step_key="sup", output_preview="again"),
    e.started("e20", 0.5, query="asked again"),
]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    order=st.permutations(range(len(STORY))),
    again=st.lists(st.integers(0, len(STORY) - 1), max_size=8),
    cuts=st.lists(st.integers(0, 30), max_size=6),
)
def test_any_order_with_duplicates_in_any_batches_ends_in_the_same_rows(
    world: World, order: list[int], again: list[int], cuts: list[int]
) -> None:
    expected, tried = world.elsewhere(f"in-order-{new_id()}"), world.elsewhere(f"shuffled-{new_id()}")
    expected.told(*STORY)
    events = [STORY[place] for place in [*order, *again]]
    for batch in e.split(events, sizes(len(events), cuts)):
        tried.told(*batch)
    assert tried.everything() == expected.everything()


def test_what_the_story_ends_in(world: World) -> None:
    world.told(*STORY)
    found = world.diagnosis()
    assert (found["status"], found["error_message"], found["query"]) == ("SUCCESS", "", "asked again")
    assert (found["total_duration_ms"], found["confidence"], found["feedback"]) == (8500, 90, "not_useful")
    assert (found["step_count"], found["tool_call_count"]) == (2, 3)
    assert (found["total_token_count"], found["steps_with_tokens"]) == (7, 1)
    sup, sub = world.steps()
    assert (sup["status"], sup["duration_ms"], sup["agent_name"]) == ("SUCCESS", 77, "supervisor")
    assert (sup["model"], sup["provider"], sup["model_input"]) == ("m0", "p", '[{"role": "user"}]')
    assert (sub["status"], sub["error_message"], sub["duration_ms"]) == ("FAILED", "boom", 3000)
    # What an end leaves empty another may fill; an error message only comes with its own end.
    assert (sub["thought"], sub["output_tokens"], sub["parent_step_key"]) == ("hm", 3, "sup")
    first, second, third = world.tools()
    assert (first["step_id"], first["output_preview"]) == (sup["id"], "again")
    assert (second["step_id"], second["success"]) == (sub["id"], False)
    assert (third["step_id"], third["step_key"]) == (None, "never")


def test_a_status_goes_from_pending_to_running_to_its_end_and_never_back(world: World) -> None:
    world.told(e.step_completed("e1", "a"))
    assert world.diagnosis()["status"] == "PENDING"
    world.told(e.started("e2", query="q"))
    assert world.diagnosis()["status"] == "RUNNING"
    world.told(e.completed("e3", status=e.FAILED))
    world.told(e.started("e4", 20), e.step_started("e5", "a", 20))
    assert world.diagnosis()["status"] == "FAILED"
    assert world.steps()[0]["status"] == "SUCCESS"


def test_a_late_start_fills_only_what_is_empty(world: World) -> None:
    world.told(e.step_completed("e1", "a", 5, agent_name="executor", model="m2"))
    world.told(e.step_started("e2", "a", 3, agent_name="planner", model="m1", provider="p", model_input_json="[]"))
    (row,) = world.steps()
    assert (row["agent_name"], row["model"], row["provider"], row["model_input"]) == ("executor", "m2", "p", "[]")
    assert row["duration_ms"] == 2000


def test_a_great_text_stays_when_another_event_does_not_give_it(world: World) -> None:
    world.told(e.started("e1", query="why"), e.step_started("e2", "a", model_input_json="[1]"))
    world.told(e.evaluation("e3", reasoning="sure", confidence=5))
    world.told(e.step_completed("e4", "a", model_output_json='{"text": "so"}', thought="hm"), e.completed("e5"))
    world.told(e.step_started("e6", "a", 0.5))
    (row,), found = world.steps(), world.diagnosis()
    assert (row["model_input"], row["model_output"], row["thought"]) == ("[1]", '{"text": "so"}', "hm")
    assert found["query"] == "why"
    assert "sure" in found["self_evaluation"]


def test_negative_durations_are_zero_and_flagged(world: World) -> None:
    world.told(
        e.started("e1", 9),
        e.completed("e2", 3),
        e.step_completed("e3", "before", 2, started_at=e.at(5)),
        e.step_completed("e4", "told", 2, step_index=1, duration_ms=-1),
        e.step_completed("e5", "endless", 2, step_index=2, duration_ms=2**62),
        e.step_completed("e6", "good", 2, step_index=3, started_at=e.at(1.5)),
        e.step_completed("e7", "unknown", 2, step_index=4),
        e.tool("e8", "t", 2, started_at=e.at(4)),
    )
    found = world.diagnosis()
    assert (found["total_duration_ms"], found["duration_flagged"]) == (0, True)
    told = [(row["duration_ms"], row["duration_flagged"]) for row in world.steps()]
    assert told == [(0, True), (0, True), (0, True), (500, False), (None, False)]
    assert [(row["duration_ms"], row["duration_flagged"]) for row in world.tools()] == [(0, True)]


def test_cached_tokens_are_part_of_the_input(world: World) -> None:
    world.told(e.step_completed("e1", "a", usage=pb.Usage(input_tokens=10, cached_tokens=8, output_tokens=3)))
    assert world.steps()[0]["token_count"] == world.diagnosis()["total_token_count"] == 13


def test_tokens_that_nobody_told_are_unknown_and_not_zero(world: World) -> None:
    world.told(e.step_completed("e1", "a"), e.step_completed("e2", "b", usage=pb.Usage(input_tokens=4)))
    assert [row["token_count"] for row in world.steps()] == [None, None]
    found = world.diagnosis()
    assert (found["total_token_count"], found["steps_with_tokens"], found["total_cost_micros"]) == (None, 0, None)
    world.told(e.step_completed("e3", "c", usage=pb.Usage(total_tokens=0, cost_micros=7)))
    found = world.diagnosis()
    assert (found["total_token_count"], found["steps_with_tokens"], found["total_cost_micros"]) == (0, 1, 7)


def test_fifty_steps_of_one_millisecond_are_ordered_by_step_index(world: World) -> None:
    world.told(*(e.step_completed(f"e{n}", f"s{n:02}", 1, step_index=49 - n) for n in range(50)))
    rows = world.steps()
    assert [row["step_index"] for row in rows] == list(range(50))
    assert len({row["id"] for row in rows}) == 50
    assert len({row["ended_at"] for row in rows}) == 1


def test_a_preview_is_cut_by_characters_and_an_emoji_is_never_halved(world: World) -> None:
    world.told(
        e.tool("e1", "a", output_preview="x" * 499 + "😀" + "y" * 100, output_length=600, is_truncated=True),
        e.tool("e2", "b", output_preview="😀" * 5000, output_length=5_000_000),
    )
    first, second = world.tools()
    assert first["output_preview"] == "x" * 499 + "😀"
    assert (first["output_length"], first["is_truncated"]) == (600, True)
    assert (second["output_preview"], second["output_length"]) == ("😀" * 500, 5_000_000)


def test_sub_agents_keep_the_exact_ids_of_their_parents(world: World) -> None:
    agents = [
        e.step_completed(f"e{n}", f"sub{n}", 2, step_index=n, agent_name=f"agent{n}", parent_step_key="sup")
        for n in (1, 2, 3)
    ]
    world.told(*agents, e.step_completed("e9", "sup", 5, agent_name="supervisor"))
    assert [row["parent_step_key"] for row in world.steps()] == [None, "sup", "sup", "sup"]


def test_a_tool_call_finds_its_step_whichever_comes_first(world: World) -> None:
    world.told(e.tool("e1", "early", step_key="a"))
    assert world.tools()[0]["step_id"] is None
    world.told(e.step_started("e2", "a"))
    world.told(e.tool("e3", "late", step_key="a"), e.tool("e4", "other", 3, session_id="x", step_key="a"))
    step = world.steps()[0]["id"]
    found = {row["invocation_key"]: row["step_id"] for row in world.tools()}
    assert found == {"early": step, "late": step, "other": None}


def test_what_ended_long_ago_is_revived_by_a_late_event(world: World) -> None:
    world.told(e.started("e1"), e.step_started("e2", "a"))
    world.clock.ahead = timedelta(hours=2)
    heard = world.diagnosis()["last_heard_at"]
    # What people say is no sign that the run goes on.
    world.say(e.USEFUL)
    world.told(e.feedback("e3", e.USEFUL, source="reviewer"))
    assert world.diagnosis()["last_heard_at"] == heard
    world.told(e.step_completed("e4", "a"))
    assert world.diagnosis()["last_heard_at"] - heard > timedelta(hours=1)
    world.told(e.completed("e5"))
    assert world.diagnosis()["status"] == "SUCCESS"
