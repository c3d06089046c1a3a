"""The queries and formulas that users have from before give the numbers that the calls give, over both backends.

They know no spaces, so the diagnoses here are the only ones of their database.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ramet_server.database.database import Database
from tests.telemetry import events as e
from tests.telemetry.answering import chain, diagnoses, metrics, row, tools
from tests.telemetry.diagnosing import AGENTS, diagnose_all
from tests.telemetry.world import TurnedClock, World


@pytest.fixture(scope="module")
def told(database: Database) -> World:
    """Sixty diagnoses."""
    world = World(database, "space", TurnedClock())
    diagnose_all(world)
    return world


def sql(world: World, statement: str, *values: Any) -> list[Mapping[str, Any]]:
    """Runs a statement of the seed as it is written."""
    marks = "%s" if world.database.engine.dialect.name == "mysql" else "?"
    written = statement.replace("?", marks)

    def read(connection: Any) -> list[Mapping[str, Any]]:
        return list(connection.exec_driver_sql(written, tuple(values)).mappings())

    return world.database.read(world.call, read)


def test_the_six_queries_of_old_give_the_numbers_of_the_calls(told: World) -> None:
    for name in ("d1", "d7", "d33"):
        of_session = sql(told, "SELECT * FROM tool_invocation WHERE session_id=?", name)
        assert sorted(each["id"] for each in of_session) == sorted(each.id for each in tools(told, session_id=name))
        steps = sql(told, "SELECT * FROM agent_step WHERE session_id=? ORDER BY step_index", name)
        assert [each["id"] for each in steps] == [each.id for each in chain(told, name).steps]
    layers = sql(
        told,
        "SELECT retrieval_layer, COUNT(*) FROM tool_invocation WHERE tool_name='lookup_knowledge' "
        "GROUP BY retrieval_layer",
    )
    counted = metrics(told, "TOOL_COUNT", group_by=["RETRIEVAL_LAYER"], tool_name="lookup_knowledge")
    assert {each["retrieval_layer"]: each["COUNT(*)"] for each in layers} == {
        each.group[0]: each.value for each in counted
    }
    for agent in AGENTS:
        (average,) = sql(told, "SELECT AVG(duration_ms) FROM agent_step WHERE agent_name=?", agent)[0].values()
        assert float(average) == pytest.approx(row(told, "STEP_DURATION_MS", agent_name=agent).value, abs=1e-4)
    (truncated,) = sql(
        told, "SELECT COUNT(*) FROM tool_invocation WHERE is_truncated=true AND tool_name='lookup_knowledge'"
    )
    assert truncated["COUNT(*)"] == row(told, "TRUNCATION_RATE", tool_name="lookup_knowledge").sum > 0
    doubtful = sql(
        told,
        "SELECT * FROM diagnosis_session WHERE JSON_EXTRACT(self_evaluation, '$.confidence') > 80 "
        "AND feedback='not_useful'",
    )
    found = diagnoses(told, min_confidence=81, feedback=e.NOT_USEFUL)
    assert sorted(each["session_id"] for each in doubtful) == sorted(each.session_id for each in found)
    assert found


def test_the_six_metrics_of_old_are_what_their_formulas_give(told: World) -> None:
    def one(formula: str, table: str, where: str = "1=1") -> float:
        (value,) = sql(told, f"SELECT {formula} AS x FROM {table} WHERE {where}")
        return float(value["x"])

    lookups = "tool_name='lookup_knowledge'"
    for name, expected in {
        "DIAGNOSIS_DURATION_MS": one("AVG(total_duration_ms)", "diagnosis_session"),
        "DIAGNOSIS_TOKENS": one("AVG(total_token_count)", "diagnosis_session"),
        "SATISFACTION": one("AVG(feedback='useful')", "diagnosis_session"),
        "L0_HIT_RATE": one("AVG(l0_match_count > 0)", "tool_invocation", lookups),
        "TRUNCATION_RATE": one("AVG(is_truncated=true)", "tool_invocation"),
        "TOOL_ACCEPTANCE": one(
            "SUM(JSON_EXTRACT(self_evaluation, '$.tools_accepted')) * 1.0 "
            "/ SUM(JSON_EXTRACT(self_evaluation, '$.tools_proposed'))",
            "diagnosis_session",
        ),
    }.items():
        assert row(told, name).value == pytest.approx(expected, abs=1e-3), name
