"""Measures: their numbers, their groups, and what they cover, over both backends."""

from __future__ import annotations

import math
from typing import Any

import pytest
from sqlalchemy import text

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet_server.database.database import Database
from ramet_server.domain.errors import InvalidField, TooLarge
from ramet_server.domain.ids import new_id
from tests.telemetry import events as e
from tests.telemetry.answering import diagnoses, metrics, row, tools
from tests.telemetry.diagnosing import diagnose_all
from tests.telemetry.world import TurnedClock, World


@pytest.fixture(scope="module")
def told(database: Database) -> World:
    """Sixty diagnoses."""
    world = World(database, f"space-{new_id()}", TurnedClock())
    diagnose_all(world)
    return world


def test_each_measure_tells_what_it_covers(told: World) -> None:
    rows = told.everything()
    found = row(told, "DIAGNOSIS_TOKENS")
    known = [each for each in rows["diagnoses"] if each["total_token_count"] is not None]
    assert (found.covered, found.unknown) == (len(known), 60 - len(known))
    assert found.partial == sum(each["steps_with_tokens"] < each["step_count"] for each in known) > 0
    assert found.sum == sum(each["total_token_count"] for each in known)
    steps = [each["token_count"] for each in rows["steps"]]
    found = row(told, "STEP_TOKENS")
    assert (found.covered, found.unknown) == (sum(each is not None for each in steps), steps.count(None))
    assert found.unknown > 0
    ended = [each["status"] for each in rows["diagnoses"] if each["status"] != "RUNNING"]
    found = row(told, "SUCCESS_RATE")
    assert (found.covered, found.unknown, found.sum) == (len(ended), 60 - len(ended), ended.count("SUCCESS"))
    looked_up = [each["l0_match_count"] for each in rows["tools"] if each["retrieval_layer"]]
    found = row(told, "L0_HIT_RATE")
    assert (found.covered, found.unknown) == (len(looked_up) - looked_up.count(None), looked_up.count(None))


@pytest.mark.parametrize("dimension", ["AGENT_FLOW", "HOUR", "DAY"])
@pytest.mark.parametrize("name", ["DIAGNOSIS_COUNT", "STEP_COUNT", "TOOL_COUNT"])
def test_groups_together_are_the_whole(told: World, name: str, dimension: str) -> None:
    found = metrics(told, name, group_by=[dimension])
    groups = [each.group[0] for each in found]
    assert groups == sorted(set(groups))
    assert len(groups) > (0 if dimension == "DAY" else 1)
    assert sum(each.value for each in found) == row(told, name).value
    if dimension == "AGENT_FLOW":
        assert groups == ["", "AI_OPS", "CHAT"]
        assert row(told, name, agent_flow="CHAT").value == found[2].value
    if dimension == "HOUR":
        assert all(len(group) == 13 and group[10] == "T" for group in groups)


def test_groups_of_steps_and_tools(told: World) -> None:
    by_agent = metrics(told, "STEP_DURATION_MS", "STEP_COUNT", group_by=["AGENT_NAME", "MODEL"])
    pairs = [("executor", "large"), ("planner", "small"), ("supervisor", "")]
    assert [tuple(each.group) for each in by_agent] == pairs * 2
    assert [each.metric for each in by_agent] == [pb.METRIC_STEP_DURATION_MS] * 3 + [pb.METRIC_STEP_COUNT] * 3
    by_tool = metrics(told, "L0_HIT_RATE", "TOOL_COUNT", group_by=["TOOL_NAME"])
    # The other tool looks nothing up, so the rate knows nothing of it.
    assert [(each.metric, each.group[0]) for each in by_tool] == [
        (pb.METRIC_L0_HIT_RATE, "lookup_knowledge"),
        (pb.METRIC_TOOL_COUNT, "lookup_knowledge"),
        (pb.METRIC_TOOL_COUNT, "queryPrometheusAlerts"),
    ]


def nearest_rank(values: list[int], percentile: float) -> int:
    """The definition, in whole numbers."""
    return sorted(values)[max(0, math.ceil(len(values) * round(percentile * 10**6) / 10**8) - 1)]


WANTED = [1, 50, 55, 95, 99.9]


def test_percentiles_are_by_nearest_rank_in_every_group(told: World) -> None:
    rows = told.everything()["steps"]
    found = metrics(told, "STEP_DURATION_MS", group_by=["AGENT_NAME"], percentiles=WANTED)
    for each in found:
        values = [step["duration_ms"] for step in rows if step["agent_name"] == each.group[0]]
        assert list(each.percentiles) == [nearest_rank(values, percentile) for percentile in WANTED]
    everything = [step["duration_ms"] for step in rows]
    assert row(told, "STEP_DURATION_MS", percentiles=[50]).percentiles == [nearest_rank(everything, 50)]
    assert not row(told, "STEP_COUNT", percentiles=[50]).percentiles


@pytest.mark.parametrize(("count", "percentile", "rank"), [(100, 55, 55), (10, 10, 1), (10, 10.000001, 2), (1, 99, 1)])
def test_ranks_are_exact(world: World, count: int, percentile: float, rank: int) -> None:
    world.told(*(e.step_completed(f"e{n}", f"s{n}", duration_ms=n) for n in range(1, count + 1)))
    assert row(world, "STEP_DURATION_MS", percentiles=[percentile]).percentiles == [rank]


def test_impossible_durations_are_left_out_of_averages_and_counted(world: World) -> None:
    world.told(
        e.started("a", 0),
        e.completed("b", 10),
        e.started("c", 5, "back"),
        e.completed("f", 1, "back"),
        e.step_completed("s1", "s1", duration_ms=-5),
        e.step_completed("s2", "s2", duration_ms=40),
        e.tool("t1", "t1", duration_ms=-1),
    )
    found = row(world, "DIAGNOSIS_DURATION_MS", percentiles=[1])
    assert (found.value, found.covered, found.unknown, list(found.percentiles)) == (10_000, 1, 1, [10_000])
    found = row(world, "STEP_DURATION_MS")
    assert (found.value, found.covered, found.unknown) == (40, 1, 1)
    found = row(world, "TOOL_DURATION_MS")
    assert (found.HasField("value"), found.covered, found.unknown) == (False, 0, 1)
    (tool,) = tools(world)
    assert (tool.duration_ms, tool.duration_flagged) == (0, True)


def test_nothing_measured_is_told_as_such(world: World) -> None:
    found = metrics(world, "DIAGNOSIS_COUNT", "DIAGNOSIS_TOKENS", "TOOL_ACCEPTANCE", percentiles=[50])
    assert [each.HasField("value") for each in found] == [True, False, False]
    assert (found[0].value, found[1].covered, list(found[1].percentiles)) == (0, 0, [])
    assert not metrics(world, "DIAGNOSIS_COUNT", group_by=["DAY"])


def test_a_time_range_takes_its_beginning_and_not_its_end(told: World) -> None:
    (oldest, *_, newest) = sorted(each.created_at.ToDatetime() for each in diagnoses(told))
    found = row(told, "DIAGNOSIS_COUNT", created_from=oldest, created_before=newest)
    assert found.value == 59


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"metrics": []}, "metrics"),
    ({"metrics": [pb.METRIC_STEP_COUNT] * 2}, "metrics[1]"),
    ({"metrics": [0]}, "metrics[0]"),
    ({"metrics": [99]}, "metrics[0]"),
    ({"group_by": ["AGENT_NAME", "AGENT_NAME"]}, "group_by[1]"),
    ({"group_by": ["TOOL_NAME"]}, "group_by[0]"),
    ({"group_by": ["DAY", "HOUR", "MODEL", "AGENT_NAME"]}, "group_by"),
    ({"tool_name": "x"}, "tool_name"),
    ({"agent_name": "x" * 33}, "agent_name"),
    ({"percentiles": [50, 0]}, "percentiles[1]"),
    ({"percentiles": [100]}, "percentiles[0]"),
    ({"percentiles": [math.nan]}, "percentiles[0]"),
    ({"percentiles": [1, 2, 3, 4, 5, 6]}, "percentiles"),
    ({"created_from": None}, "created_from"),
    ({"created_before": None}, "created_before"),
    ({"created_before": {"seconds": 1}}, "created_before"),
    ({"created_from": {"seconds": 1}}, "created_before"),
]


@pytest.mark.parametrize(("fields", "field"), WRONG, ids=[f"{field}-{n}" for n, (_, field) in enumerate(WRONG)])
def test_what_is_wrong_with_a_question_is_told_by_its_field(world: World, fields: dict[str, Any], field: str) -> None:
    with pytest.raises((InvalidField, TooLarge)) as refused:
        metrics(world, "STEP_COUNT", **fields)
    assert refused.value.field == field


def test_a_measure_of_other_rows_is_refused_with_a_filter_of_steps(world: World) -> None:
    with pytest.raises(InvalidField) as refused:
        metrics(world, "STEP_COUNT", "DIAGNOSIS_COUNT", agent_name="planner")
    assert refused.value.field == "agent_name"


def test_too_many_groups_are_refused(world: World) -> None:
    copy = (
        "INSERT INTO agent_step (id, space_id, session_id, step_key, step_index, agent_name, created_at, updated_at) "
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 10001) "
        "SELECT x, :space, 'd', {key}, 0, {key}, :now, :now FROM n"
    )
    key = "CAST(x AS CHAR)" if world.database.engine.dialect.name == "mysql" else "CAST(x AS TEXT)"
    values = {"space": world.space, "now": world.clock.now().replace(tzinfo=None).isoformat(" ")}
    world.database.write(world.call, lambda connection: connection.execute(text(copy.format(key=key)), values))
    with pytest.raises(TooLarge):
        metrics(world, "STEP_COUNT", group_by=["AGENT_NAME"])
    assert row(world, "STEP_COUNT").value == 10_001
