"""The six SQL queries that people wrote before there was an RPC for each, as they wrote them, on MariaDB."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet_server.database import schema
from ramet_server.database.database import Database
from ramet_server.domain.call import Call
from tests.telemetry import events as e
from tests.telemetry.world import TurnedClock, World

pytestmark = pytest.mark.mariadb

TOOLS_OF_A_DIAGNOSIS = "SELECT * FROM tool_invocation WHERE session_id=?"
HITS_BY_LAYER = (
    "SELECT retrieval_layer, COUNT(*) FROM tool_invocation WHERE tool_name='lookup_knowledge' GROUP BY retrieval_layer"
)
THINKING_TIME = "SELECT AVG(duration_ms) FROM agent_step WHERE agent_name=?"
DECISION_CHAIN = "SELECT * FROM agent_step WHERE session_id=? ORDER BY step_index"
TRUNCATED = "SELECT COUNT(*) FROM tool_invocation WHERE is_truncated=true AND tool_name='lookup_knowledge'"
SURE_AND_WRONG = (
    "SELECT * FROM diagnosis_session WHERE JSON_EXTRACT(self_evaluation, '$.confidence') > 80 AND feedback='not_useful'"
)


@pytest.fixture
def world(mariadb_url: str) -> World:
    """A database of its own: the queries know no spaces."""
    database = Database.open(mariadb_url)
    schema.prepare(database, Call("default"))
    return World(database, "default", TurnedClock())


def _run(world: World, query: str, value: str | None = None) -> list[dict[str, Any]]:
    # The driver writes a parameter as :name where people write a question mark.
    statement, parameters = text(query.replace("?", ":value")), {} if value is None else {"value": value}
    with world.database.engine.connect() as connection:
        return [dict(row) for row in connection.execute(statement, parameters).mappings()]


def _retrieval(layer: pb.RetrievalLayer.ValueType, l0: int) -> pb.Retrieval:
    return pb.Retrieval(layer=layer, l0_match_count=l0, l1_match_count=1, details_json='{"l0_titles": ["a"]}')


def _tell(world: World) -> None:
    both, l1 = _retrieval(pb.RETRIEVAL_LAYER_L0_L1, 2), _retrieval(pb.RETRIEVAL_LAYER_L1, 0)
    world.told(
        e.started("e1", query="为什么慢?", agent_flow="AI_OPS"),
        e.step_completed("e2", "b", agent_name="executor", step_index=1, duration_ms=300),
        e.step_completed("e3", "a", agent_name="planner", step_index=0, duration_ms=100),
        e.step_completed("e4", "c", agent_name="executor", step_index=2, duration_ms=500),
        e.tool("e5", "t1", step_key="b", retrieval=both, is_truncated=True),
        e.tool("e6", "t2", step_key="b", retrieval=l1),
        e.tool("e7", "t3", step_key="c", retrieval=both),
        e.tool("e8", "t4", tool_name="queryPrometheusAlerts", is_truncated=True),
        e.evaluation("e9", confidence=90, reasoning="sure", evidence_count=3),
        e.feedback("e10", e.NOT_USEFUL),
        e.completed("e11"),
        e.started("f1", session_id="sure-and-right"),
        e.evaluation("f2", session_id="sure-and-right", confidence=95),
        e.feedback("f3", e.USEFUL, session_id="sure-and-right"),
        e.started("g1", session_id="unsure-and-wrong"),
        e.evaluation("g2", session_id="unsure-and-wrong", confidence=80),
        e.feedback("g3", e.NOT_USEFUL, session_id="unsure-and-wrong"),
    )


def test_every_query_runs_as_written(world: World) -> None:
    _tell(world)
    tools = _run(world, TOOLS_OF_A_DIAGNOSIS, "d")
    assert {row["tool_name"] for row in tools} == {"lookup_knowledge", "queryPrometheusAlerts"}
    assert len(tools) == 4
    layers = {row["retrieval_layer"]: row["COUNT(*)"] for row in _run(world, HITS_BY_LAYER)}
    assert layers == {"L0+L1": 2, "L1": 1}
    assert [row["AVG(duration_ms)"] for row in _run(world, THINKING_TIME, "executor")] == [400]
    chain = _run(world, DECISION_CHAIN, "d")
    assert [(row["step_index"], row["agent_name"]) for row in chain] == [
        (0, "planner"),
        (1, "executor"),
        (2, "executor"),
    ]
    assert [row["COUNT(*)"] for row in _run(world, TRUNCATED)] == [1]
    assert [row["session_id"] for row in _run(world, SURE_AND_WRONG)] == ["d"]
    world.database.close()


def test_the_columns_that_people_know_are_all_there(world: World) -> None:
    _tell(world)
    (found,) = _run(world, SURE_AND_WRONG)
    assert found["query"] == "为什么慢?"
    assert {
        *("id", "session_id", "query", "status", "agent_flow", "total_duration_ms", "total_token_count"),
        *("step_count", "tool_call_count", "self_evaluation", "feedback", "created_at", "updated_at"),
    } <= found.keys()
    assert {
        *("id", "session_id", "step_index", "agent_name", "model_input", "model_output", "thought"),
        *("has_tool_call", "duration_ms", "token_count", "created_at"),
    } <= _run(world, DECISION_CHAIN, "d")[0].keys()
    steps = {row["step_key"]: row["id"] for row in _run(world, DECISION_CHAIN, "d")}
    tools = _run(world, TOOLS_OF_A_DIAGNOSIS, "d")
    assert {row["invocation_key"]: row["step_id"] for row in tools} == {
        "t1": steps["b"],
        "t2": steps["b"],
        "t3": steps["c"],
        "t4": None,
    }
    assert {
        *("tool_name", "input_params", "output_preview", "output_length", "l0_match_count", "l1_match_count"),
        *("is_truncated", "retrieval_details", "duration_ms", "success", "error_message", "created_at"),
    } <= tools[0].keys()
    world.database.close()


SEED = {
    "diagnosis_session": {
        "session_id": "varchar",
        "query": "text",
        "status": "varchar 'PENDING'",
        "agent_flow": "varchar NULL",
        "total_duration_ms": "int NULL",
        "total_token_count": "int NULL",
        "step_count": "int",
        "tool_call_count": "int",
        "self_evaluation": "json NULL",
        "feedback": "varchar NULL",
        "created_at": "datetime now",
        "updated_at": "datetime now and then",
    },
    "agent_step": {
        "session_id": "varchar",
        "step_index": "int",
        "agent_name": "varchar",
        "model_input": "json NULL",
        "model_output": "json NULL",
        "thought": "text NULL",
        "has_tool_call": "flag 0",
        "duration_ms": "int NULL",
        "token_count": "int NULL",
        "created_at": "datetime now",
    },
    "tool_invocation": {
        "session_id": "varchar",
        "step_id": "int NULL",
        "tool_name": "varchar",
        "input_params": "json",
        "output_preview": "text NULL",
        "output_length": "int NULL",
        "retrieval_layer": "varchar NULL",
        "l0_match_count": "int NULL",
        "l1_match_count": "int NULL",
        "is_truncated": "flag 0",
        "retrieval_details": "json NULL",
        "duration_ms": "int NULL",
        "success": "flag 1",
        "error_message": "text NULL",
        "created_at": "datetime now",
    },
}
"""The columns of old with their kinds and defaults; counts are never NULL here, since they are computed."""

LEAST_CHARACTERS = {
    "session_id": 64,
    "status": 16,
    "agent_flow": 32,
    "feedback": 16,
    "agent_name": 32,
    "tool_name": 64,
    "retrieval_layer": 8,
}

INDEXES = {
    "diagnosis_session": {"idx_created_at": "created_at", "idx_status": "status", "idx_agent_flow": "agent_flow"},
    "agent_step": {"idx_session_step": "session_id,step_index", "idx_agent_name": "agent_name"},
    "tool_invocation": {
        "idx_session_id": "session_id",
        "idx_tool_name": "tool_name",
        "idx_retrieval_layer": "retrieval_layer",
    },
}
"""The indexes of old with their columns; here each begins with the space, and some go on."""

_KINDS = {"bigint": "int", "tinyint": "flag", "longtext": "text"}


def test_tables_have_the_columns_types_and_defaults_of_old_or_wider_ones(world: World) -> None:
    for table, expected in SEED.items():
        columns = {row["column_name"]: row for row in _columns(world, table)}
        assert columns["id"]["data_type"] == "bigint"
        assert columns["id"]["column_key"] == "PRI"
        assert {name: _kind(columns[name]) for name in expected} == expected
        for name, least in LEAST_CHARACTERS.items():
            assert name not in expected or columns[name]["characters"] >= least
    world.database.close()


def test_indexes_have_the_names_and_columns_of_old(world: World) -> None:
    for table, expected in INDEXES.items():
        query = (
            "SELECT index_name AS name, GROUP_CONCAT(column_name ORDER BY seq_in_index) AS columns "
            "FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = ? GROUP BY index_name"
        )
        found = {row["name"]: row["columns"] for row in _run(world, query, table)}
        for name, columns in expected.items():
            assert f"{found[name]},".startswith(f"space_id,{columns},")
        if table == "diagnosis_session":
            assert "space_id,session_id" in found.values()
    world.database.close()


def _columns(world: World, table: str) -> list[dict[str, Any]]:
    query = """SELECT column_name AS column_name, data_type AS data_type, is_nullable AS is_nullable, column_key AS
        column_key, column_default AS told, extra AS extra, character_maximum_length AS characters, EXISTS (
            SELECT 1 FROM information_schema.check_constraints k WHERE k.constraint_schema = DATABASE()
            AND k.table_name = c.table_name AND k.check_clause = CONCAT('json_valid(`', c.column_name, '`)')
        ) AS is_json FROM information_schema.columns c WHERE table_schema = DATABASE() AND table_name = ?"""
    return _run(world, query, table)


def _kind(column: dict[str, Any]) -> str:
    """Tells a column's kind, its default, and whether it may be NULL, as SEED writes them."""
    # MariaDB keeps JSON as text that a constraint checks.
    kind = "json" if column["is_json"] else _KINDS.get(column["data_type"], column["data_type"])
    told = str(column["told"])
    if kind == "datetime":
        assert told.startswith("current_timestamp(6)")
        return "datetime now and then" if "on update" in column["extra"].lower() else "datetime now"
    if kind in ("int", "text", "json") or told == "NULL" or column["told"] is None:
        return f"{kind} NULL" if column["is_nullable"] == "YES" else kind
    return f"{kind} {told}"
