"""Diagnoses, decision chains and tool calls as they are read back, over both backends."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet_server.domain.errors import DiagnosisNotFound, InvalidField
from tests.telemetry import events as e
from tests.telemetry.answering import chain, diagnoses, get, pages, tools
from tests.telemetry.world import TurnedClock, World


def test_a_diagnosis_tells_all_that_was_told_of_it(world: World) -> None:
    world.told(
        e.started("e1", query="why?", agent_flow="CHAT", conversation_id="main"),
        e.step_completed("e2", "s", usage=pb.Usage(input_tokens=3, output_tokens=4, cost_micros=50)),
        e.tool("e3", "t", step_key="s"),
        e.evaluation("e4", confidence=90, reasoning="sure", tools_proposed=2, tools_accepted=1),
        e.completed("e5", 9, status=e.FAILED, error_message="boom"),
    )
    world.say(e.NOT_USEFUL, comment="no")
    world.say(e.USEFUL, source="reviewer")
    found = get(world)
    assert (found.query, found.agent_flow, found.conversation_id) == ("why?", "CHAT", "main")
    assert (found.status, found.error_message) == (pb.RUN_STATUS_FAILED, "boom")
    assert (found.total_duration_ms, found.total_token_count, found.total_cost_micros) == (9000, 7, 50)
    assert (found.step_count, found.tool_call_count, found.steps_with_tokens) == (1, 1, 1)
    assert (found.self_evaluation.confidence, found.self_evaluation.reasoning) == (90, "sure")
    assert [(each.source, each.value) for each in found.feedback] == [("reviewer", e.USEFUL), ("user", e.NOT_USEFUL)]
    assert (found.started_at, found.ended_at) == (e.at(0), e.at(9))


def test_what_nobody_told_is_absent(world: World) -> None:
    world.told(e.step_started("e1", "s"))
    found = get(world)
    assert found.status == pb.RUN_STATUS_PENDING
    for name in ("total_duration_ms", "total_token_count", "total_cost_micros", "self_evaluation", "started_at"):
        assert not found.HasField(name), name
    (step,) = chain(world).steps
    assert not step.HasField("usage")
    assert not step.HasField("duration_ms")


def test_an_unknown_diagnosis_is_not_found(world: World) -> None:
    for read in (get, chain):
        with pytest.raises(DiagnosisNotFound):
            read(world, "nobody")
    world.told(e.started("e1"))
    with pytest.raises(DiagnosisNotFound):
        get(world.elsewhere(f"{world.space}-2"))


def test_at_most_a_hundred_sources_come_with_a_diagnosis(world: World) -> None:
    world.told(*(e.feedback(f"e{n:03}", e.USEFUL, source=f"s{n:03}") for n in range(120)))
    assert [each.source for each in get(world).feedback] == [f"s{n:03}" for n in range(100)]


def test_a_silent_diagnosis_shows_as_abandoned_with_its_steps_until_it_ends(world: World, clock: TurnedClock) -> None:
    world.told(e.started("e1"), e.step_started("e2", "s"))
    assert get(world).status == pb.RUN_STATUS_RUNNING
    clock.ahead += timedelta(seconds=901)
    world.told(e.started("e3", session_id="other"))
    assert get(world).status == pb.RUN_STATUS_ABANDONED
    assert [step.status for step in chain(world).steps] == [pb.RUN_STATUS_ABANDONED]
    assert ids(world, status=pb.RUN_STATUS_ABANDONED) == ["d"]
    assert ids(world, status=pb.RUN_STATUS_RUNNING) == ["other"]
    world.told(e.completed("e4"))
    assert get(world).status == pb.RUN_STATUS_SUCCESS
    assert ids(world, status=pb.RUN_STATUS_ABANDONED) == []


def ids(world: World, **conditions: Any) -> list[str]:
    """The ids of the diagnoses that a filter admits, newest first."""
    return [found.session_id for found in diagnoses(world, **conditions)]


@pytest.fixture
def many(world: World, clock: TurnedClock) -> World:
    """Ten diagnoses, a minute apart; d9 is the newest."""
    for number in range(10):
        name = f"d{number}"
        world.told(
            e.started(
                f"a{number}",
                session_id=name,
                query=f"Why is the ÉCLAIR {number} late?",
                agent_flow="CHAT" if number % 2 else "AI_OPS",
                conversation_id=f"c{number % 3}",
            ),
            e.evaluation(f"b{number}", session_id=name, confidence=10 * number),
        )
        if number < 5:
            world.told(e.completed(f"c{number}", session_id=name))
        if number in (3, 8, 9):
            world.told(e.feedback(f"f{number}", e.NOT_USEFUL, session_id=name))
        clock.ahead += timedelta(seconds=60)
    # The later word counts.
    world.told(e.feedback("late", e.USEFUL, 20, session_id="d3", source="reviewer"))
    return world


def test_lists_are_newest_first_and_filtered(many: World) -> None:
    everything = [f"d{number}" for number in reversed(range(10))]
    assert ids(many) == everything
    assert ids(many, agent_flow="CHAT") == ["d9", "d7", "d5", "d3", "d1"]
    assert ids(many, conversation_id="c1") == ["d7", "d4", "d1"]
    assert ids(many, conversation_id="c1", agent_flow="CHAT") == ["d7", "d1"]
    assert ids(many, status=pb.RUN_STATUS_SUCCESS) == ["d4", "d3", "d2", "d1", "d0"]
    assert ids(many, status=pb.RUN_STATUS_RUNNING, agent_flow="AI_OPS") == ["d8", "d6"]
    assert ids(many, min_confidence=30, max_confidence=50) == ["d5", "d4", "d3"]
    assert ids(many, feedback=e.NOT_USEFUL) == ["d9", "d8"]
    assert ids(many, feedback=e.USEFUL) == ["d3"]
    middle = diagnoses(many)[4].created_at
    assert ids(many, created_from=middle) == everything[:5]
    assert ids(many, created_before=middle) == everything[5:]


def test_high_confidence_with_negative_feedback_is_one_call(many: World) -> None:
    assert ids(many, feedback=e.NOT_USEFUL, min_confidence=81) == ["d9"]


def test_texts_are_found_without_regard_to_the_case_of_ascii_letters(many: World) -> None:
    first = diagnoses(many)[-1].created_at
    assert ids(many, created_from=first, query_contains="wHY IS the") == ids(many)
    assert ids(many, created_from=first, query_contains="r 7 LATE?") == ["d7"]
    assert ids(many, created_from=first, query_contains="Éclair 1") == ["d1"]
    assert ids(many, created_from=first, query_contains="éclair") == []
    assert ids(many, created_from=first, query_contains="%") == []
    with pytest.raises(InvalidField) as refused:
        ids(many, query_contains="why")
    assert refused.value.field == "filter.created_from"


FILTERS: list[dict[str, Any]] = [
    {},
    {"agent_flow": "CHAT"},
    {"status": pb.RUN_STATUS_SUCCESS},
    {"min_confidence": 20},
    {"feedback": e.NOT_USEFUL, "min_confidence": 81},
    {"conversation_id": "c1", "agent_flow": "CHAT"},
]


@pytest.mark.parametrize("conditions", FILTERS, ids=str)
def test_pages_together_are_the_whole_list(many: World, conditions: dict[str, Any]) -> None:
    expected = ids(many, **conditions)
    for size in (1, 2, 3):
        request = pb.ListDiagnosisSessionsRequest(filter=pb.DiagnosisFilter(**conditions), page_size=size)
        found = [each.session_id for page in pages(many, request) for each in page.sessions]
        assert found == expected


def test_a_page_ends_where_it_holds_enough_text(world: World) -> None:
    for number in range(4):
        world.told(e.started(f"e{number}", session_id=f"d{number}", query="x" * 60_000))
    small = world.with_limits(max_page_bytes=130_000)
    counts = [len(page.sessions) for page in pages(small, pb.ListDiagnosisSessionsRequest())]
    assert counts == [2, 2]
    tiny = world.with_limits(max_page_bytes=10)
    assert [len(page.sessions) for page in pages(tiny, pb.ListDiagnosisSessionsRequest())] == [1, 1, 1, 1]


def test_a_chain_has_its_steps_in_order_with_their_tools(world: World) -> None:
    world.told(
        e.started("e0"),
        *(
            e.step_completed(f"s{n}", f"s{n}", step_index=n, parent_step_key="s0" if n else "", agent_name=name)
            for n, name in reversed(list(enumerate(("supervisor", "planner", "executor"))))
        ),
        e.tool("t1", "t1", 5, step_key="s1"),
        e.tool("t2", "t2", 4, step_key="s1", success=False, error_message="no"),
        e.tool("t3", "t3", 6, step_key="s2", retrieval=pb.Retrieval(layer=pb.RETRIEVAL_LAYER_L0_L1, l0_match_count=2)),
        e.tool("t4", "t4", 7),
        e.tool("t5", "t5", 8, step_key="never came"),
    )
    found = chain(world)
    assert [(step.step_index, step.agent_name, step.parent_step_key) for step in found.steps] == [
        (0, "supervisor", ""),
        (1, "planner", "s0"),
        (2, "executor", "s0"),
    ]
    assert [[tool.invocation_key for tool in step.tool_invocations] for step in found.steps] == [
        [],
        ["t2", "t1"],
        ["t3"],
    ]
    assert [tool.invocation_key for tool in found.loose_tool_invocations] == ["t4", "t5"]
    tool = found.steps[2].tool_invocations[0]
    assert (tool.step_id, tool.session_id, tool.retrieval.layer) == (found.steps[2].id, "d", pb.RETRIEVAL_LAYER_L0_L1)
    assert {step.session_id for step in found.steps} == {"d"}


def test_fifty_steps_of_one_millisecond_are_in_order_over_all_pages(world: World) -> None:
    world.told(*(e.step_completed(f"e{n}", f"s{n}", 1, step_index=n) for n in (*range(1, 50, 2), *range(0, 50, 2))))
    found = [step.step_index for page in chain_pages(world, page_size=7) for step in page.steps]
    assert found == list(range(50))


def chain_pages(world: World, **fields: Any) -> Iterator[pb.GetDecisionChainResponse]:
    """All pages of the chain."""
    return pages(world, pb.GetDecisionChainRequest(session_id="d", **fields))


def test_a_chain_of_much_text_comes_in_small_pages(world: World) -> None:
    text = f'"{"x" * 60_000}"'
    for n in range(6):
        world.told(
            e.step_completed(f"s{n}", f"s{n}", step_index=n, model_output_json=text),
            *(e.tool(f"t{n}{m}", f"t{n}{m}", step_key=f"s{n}", input_params_json=text) for m in range(3)),
        )
    found = list(chain_pages(world.with_limits(max_page_bytes=500_000)))
    assert [len(page.steps) for page in found] == [2, 2, 2]
    assert all(len(step.tool_invocations) == 3 for page in found for step in page.steps)
    # A step that is too large by itself comes alone, with the first of its tool calls.
    found = list(chain_pages(world.with_limits(max_page_bytes=100_000)))
    assert [[len(step.tool_invocations) for step in page.steps] for page in found] == [[1]] * 6


def test_loose_tool_calls_come_on_the_first_page_only(world: World) -> None:
    world.told(*e.steps(4), e.tool("t", "t"))
    assert [len(page.loose_tool_invocations) for page in chain_pages(world, page_size=2)] == [1, 0]


def test_tool_calls_are_listed_by_each_of_their_kinds(world: World, clock: TurnedClock) -> None:
    for n in range(6):
        layer = (pb.RETRIEVAL_LAYER_L0, pb.RETRIEVAL_LAYER_L1)[n % 2]
        world.told(
            e.tool(f"a{n}", f"a{n}", session_id=f"d{n % 3}", retrieval=pb.Retrieval(layer=layer), is_truncated=n > 3),
            e.tool(f"b{n}", f"b{n}", session_id="d", tool_name="alerts", success=n != 2),
        )
        clock.ahead += timedelta(seconds=1)
    assert len(tools(world)) == 12
    assert keys(world, session_id="d1") == ["a4", "a1"]
    assert keys(world, tool_name="alerts", success=False) == ["b2"]
    assert keys(world, layer=pb.RETRIEVAL_LAYER_L1) == ["a5", "a3", "a1"]
    assert keys(world, tool_name="lookup_knowledge", is_truncated=True) == ["a5", "a4"]
    assert keys(world, tool_name="lookup_knowledge", is_truncated=False, session_id="d0") == ["a3", "a0"]
    since = tools(world, session_id="d")[1].created_at
    assert keys(world, session_id="d", created_from=since) == ["b5", "b4"]
    request = pb.ListToolInvocationsRequest(filter=pb.ToolFilter(success=True), page_size=2)
    found = [each.invocation_key for page in pages(world, request) for each in page.invocations]
    assert len(found) == 11


def keys(world: World, **conditions: Any) -> list[str]:
    """The keys of the tool calls that a filter admits, newest first."""
    return [found.invocation_key for found in tools(world, **conditions)]
