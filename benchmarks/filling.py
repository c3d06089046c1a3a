"""Large amounts of data, written straight to a MariaDB database with the product's own tables.

That is quicker than an import, which takes and checks one session after the other: some rows are written
from here, and the database copies them with other ids and earlier times. What is written is what the
services would have written: ``ramet-server verify`` finds nothing in it.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from sqlalchemy import Engine, Table, insert

from benchmarks.copies import Copies
from ramet_server.database.engine import open_engine
from ramet_server.database.tables.session import OPEN_END, context_slot, history_span, session, session_tag
from ramet_server.database.tables.shared import space
from ramet_server.database.tables.telemetry import agent_step, diagnosis_session, tool_invocation
from ramet_server.database.tables.tree import topology_node
from ramet_server.domain.ids import new_origin
from telemetry.rules.row_ids import RowIds

Row = Mapping[str, Any]

SPACE = "default"
STEPS_OF_DIAGNOSIS = 10
MINUTES_BETWEEN_DIAGNOSES = 5
"""A longer past holds more of them, not a busier one."""

_BASE, _BASE_STEPS = 1000, 10_000
"""How much is written from here."""

_CHILDREN = 10
_AT_ONCE = 2000


def put_sessions(url: str, count: int, now: datetime) -> None:
    """Makes so many thousands of sessions without records, a second apart, with tags, slots and a node for each.

    A thousand nodes make a tree.
    """
    ids = [f"session-{number:06d}" for number in range(_BASE)]
    origins = [new_origin() for _ in ids]
    made = [now - timedelta(seconds=_BASE - number) for number in range(_BASE)]
    copies = Copies(count // _BASE, timedelta(seconds=_BASE))
    engine, _ = open_engine(url)
    places = range(_BASE)
    slots = ("memory", "insight")
    _insert(engine, space, [{"space_id": SPACE, "root_count": copies.times, "created_at": now}])
    _insert(engine, history_span, (_span(origins[each]) for each in places))
    _insert(engine, session_tag, (_tag(ids[each], tag) for each in places for tag in _tags(each)))
    _insert(engine, context_slot, (_slot(ids[each], slot, made[each]) for each in places for slot in slots))
    _insert(engine, topology_node, _nodes(ids, made))
    _insert(engine, session, (_session(ids[each], origins[each], each, made[each]) for each in places))
    for table in (history_span, session_tag, context_slot, topology_node, session):
        copies.make(engine, table)
    engine.dispose()


def put_diagnoses(url: str, steps: int, now: datetime) -> list[str]:
    """Makes so many ten thousands of steps, of diagnoses that ended one after the other until now.

    Returns the ids of some, from all over their time.
    """
    count = _BASE_STEPS // STEPS_OF_DIAGNOSIS
    ids = [f"diagnosis-{number:06d}" for number in range(count)]
    ends = [now - timedelta(minutes=MINUTES_BETWEEN_DIAGNOSES) * (count - number) for number in range(count)]
    copies = Copies(steps // _BASE_STEPS, timedelta(minutes=MINUTES_BETWEEN_DIAGNOSES) * count)
    engine, _ = open_engine(url)
    row_ids = RowIds()
    pairs = list(zip(ids, ends, strict=True))
    steps_of = {each: list(_steps(row_ids, each, end)) for each, end in pairs}
    _insert(engine, agent_step, (step for several in steps_of.values() for step in several))
    tools = (_tool(row_ids, step) for several in steps_of.values() for step in several if step["has_tool_call"])
    _insert(engine, tool_invocation, tools)
    _insert(engine, diagnosis_session, (_diagnosis(row_ids, each, end) for each, end in pairs))
    for table in (agent_step, tool_invocation, diagnosis_session):
        copies.make(engine, table)
    engine.dispose()
    return [copies.name(number, each) for number in range(copies.times) for each in ids[:: copies.times]]


def _insert(engine: Engine, table: Table, rows: Iterable[Row]) -> None:
    waiting: Iterator[Row] = iter(rows)
    while several := list(islice(waiting, _AT_ONCE)):
        with engine.begin() as connection:
            connection.execute(insert(table), several)


def _session(session_id: str, origin: str, number: int, made: datetime) -> Row:
    return {
        "space_id": SPACE,
        "session_id": session_id,
        "origin": origin,
        "label": f"topic {number % 20}",
        "status": "ARCHIVED" if number % 10 == 0 else "ACTIVE",
        "turn_count": 0,
        "head_seq": 0,
        "floor_seq": 0,
        "max_record_bytes": 0,
        "version": 1,
        "created_at": made,
        "updated_at": made,
        "last_active_at": made,
    }


def _span(origin: str) -> Row:
    return {"owner_origin": origin, "first_seq": 1, "origin": origin, "last_seq": OPEN_END}


def _tags(number: int) -> list[str]:
    return [f"of {of}: {number % of}" for of in (2, 5)]


def _tag(session_id: str, tag: str) -> Row:
    return {"space_id": SPACE, "session_id": session_id, "tag": tag}


def _slot(session_id: str, slot: str, made: datetime) -> Row:
    content = f"What {session_id} knows. " * 8
    key = {"space_id": SPACE, "session_id": session_id, "slot": slot}
    return key | {"content": content, "version": 1, "updated_at": made}


def _nodes(ids: list[str], made: list[datetime]) -> Iterator[Row]:
    depths: list[int] = []
    for number, node_id in enumerate(ids):
        parent = (number - 1) // _CHILDREN if number else None
        depths.append(0 if parent is None else depths[parent] + 1)
        first_child = number * _CHILDREN + 1
        yield {
            "space_id": SPACE,
            "node_id": node_id,
            "parent_id": None if parent is None else ids[parent],
            "depth": depths[-1],
            "index": (number - 1) % _CHILDREN if number else 0,
            "child_count": max(0, min(_CHILDREN, len(ids) - first_child)),
            "label": f"topic {number % 20}",
            "awaits_content": False,
            "config_version": 0,
            "version": 1,
            "created_at": made[number],
            "updated_at": made[number],
        }


def _diagnosis(row_ids: RowIds, session_id: str, end: datetime) -> Row:
    began = end - timedelta(seconds=STEPS_OF_DIAGNOSIS)
    return {
        "id": row_ids.take(end),
        "space_id": SPACE,
        "session_id": session_id,
        "status": "SUCCESS",
        "agent_flow": "CHAT",
        "total_duration_ms": 1000 * STEPS_OF_DIAGNOSIS,
        "total_token_count": 120 * STEPS_OF_DIAGNOSIS,
        "steps_with_tokens": STEPS_OF_DIAGNOSIS,
        "step_count": STEPS_OF_DIAGNOSIS,
        "tool_call_count": STEPS_OF_DIAGNOSIS // 2,
        "query": "Why is the queue so long?",
        **_times(began, end),
        "last_heard_at": end,
    }


def _steps(row_ids: RowIds, session_id: str, end: datetime) -> Iterator[Row]:
    for index in range(STEPS_OF_DIAGNOSIS):
        ended = end - timedelta(seconds=STEPS_OF_DIAGNOSIS - 1 - index)
        yield {
            "id": row_ids.take(ended),
            "space_id": SPACE,
            "session_id": session_id,
            "step_key": f"step-{index}",
            "step_index": index,
            "agent_name": ("planner", "searcher")[index % 2],
            "status": "SUCCESS",
            "has_tool_call": index % 2 == 0,
            "duration_ms": 800 + 20 * index,
            "token_count": 120,
            "input_tokens": 100,
            "output_tokens": 20,
            "model": "a-model",
            **_times(ended - timedelta(seconds=1), ended),
            "thought": "The queue grew after the deploy; look there first.",
            "model_input": '{"messages":[{"role":"user","content":"Why is the queue so long?"}]}',
            "model_output": '{"content":"Let me look at the deploys."}',
        }


def _tool(row_ids: RowIds, step: Row) -> Row:
    return {
        "id": row_ids.take(step["ended_at"]),
        "space_id": SPACE,
        "session_id": step["session_id"],
        "invocation_key": f"tool of {step['step_key']}",
        "step_id": step["id"],
        "step_key": step["step_key"],
        "tool_name": "search",
        "output_length": 40,
        "duration_ms": 90,
        "success": True,
        **_times(step["started_at"], step["ended_at"]),
        "output_preview": "deploy 4711, three hours ago, by a robot",
        "input_params": '{"query":"deploys"}',
    }


def _times(began: datetime, ended: datetime) -> dict[str, datetime]:
    return {"started_at": began, "ended_at": ended, "created_at": ended, "updated_at": ended}


def just_now() -> datetime:
    """Returns the current time."""
    return datetime.now(UTC)


def stamp(moment: datetime) -> Timestamp:
    """Returns a moment as messages have it."""
    value = Timestamp()
    value.FromDatetime(moment)
    return value
