"""The SQL of steps and tool calls as they are merged."""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from json.encoder import encode_basestring_ascii
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, and_, bindparam, func, select, update
from sqlalchemy import Row as SqlRow
from sqlalchemy.exc import IntegrityError

from ramet_server.database.faults import is_duplicate
from ramet_server.database.prepared import Row
from ramet_server.database.rewriting import insert_rows, rewrite
from ramet_server.database.tables.telemetry import agent_step, tool_invocation
from telemetry.rules.ports import Key, KeyedRow, KeyTaken
from telemetry.rules.registers import Merged, pack, unpack
from telemetry.rules.values import RunStatus

_FIXED = ("space_id", "session_id", "step_key", "created_at")
_TOOL_FIXED = ("space_id", "session_id", "invocation_key", "created_at")
_GREAT = ("thought", "model_input", "model_output")

_STEP_MERGED = (
    *("parent_step_key", "step_index", "agent_name", "status", "has_tool_call", "model", "provider"),
    *("token_count", "input_tokens", "cached_tokens", "output_tokens", "cost_micros"),
    *("started_at", "ended_at", "error_message"),
)
_STEP_READ = tuple(
    agent_step.c[name] for name in ("id", "session_id", "step_key", "created_at", "merged_from", *_STEP_MERGED)
)
_STEP_COLUMNS, _TOOL_COLUMNS = tuple(agent_step.c.keys()), tuple(tool_invocation.c.keys())


def _keep_told(new: ColumnElement[Any], old: ColumnElement[Any]) -> ColumnElement[Any]:
    return func.coalesce(new, old)


_KEEP = dict.fromkeys(_GREAT, _keep_told)

_S, _T = agent_step.c, tool_invocation.c


def _meant(table: Table, key: ColumnElement[Any]) -> ColumnElement[bool]:
    """Means rows of these sessions with these keys; others of the sessions may be among them.

    SQLite scans the whole table for a list of pairs.
    """
    return and_(
        table.c.space_id == bindparam("space"),
        table.c.session_id.in_(bindparam("sessions", expanding=True)),
        key.in_(bindparam("keys", expanding=True)),
    )


# Statements are built once: in a batch of one event, building them would take longer than running them.
_STEPS = select(*_STEP_READ).where(_meant(agent_step, _S.step_key))
_TOOLS = select(_T.id, _T.session_id, _T.invocation_key, _T.created_at, _T.merged_from).where(
    _meant(tool_invocation, _T.invocation_key)
)
_ITS_STEP = select(_S.id).where(
    _S.space_id == bindparam("space"), _S.session_id == _T.session_id, _S.step_key == _T.step_key
)
_ORPHANS = select(_T.id, _T.session_id, _T.step_key).where(_meant(tool_invocation, _T.step_key), _T.step_id.is_(None))
_ADOPT = (
    update(tool_invocation)
    .where(_T.id.in_(bindparam("orphans", expanding=True)))
    .values(step_id=_ITS_STEP.scalar_subquery(), updated_at=bindparam("now"))
)


class SqlSteps:
    """Steps of one space; implements ``rules.ports.Steps``."""

    def __init__(self, connection: Connection, space: str) -> None:
        self._connection = connection
        self._space = space

    def of(self, keys: Collection[Key]) -> dict[Key, KeyedRow]:
        """Returns those that exist, without their great texts."""
        if not keys:
            return {}
        found = self._connection.execute(_STEPS, _among(self._space, keys))
        return {(row.session_id, row.step_key): _step(row) for row in found if (row.session_id, row.step_key) in keys}

    def save(self, rows: Sequence[KeyedRow], now: datetime) -> None:
        """Stores new and changed rows; great texts that they do not give stay."""
        new = [self._row(row, now) for row in rows if not row.stored]
        changed = [self._row(row, now) for row in rows if row.stored]
        _insert(self._connection, agent_step, new)
        rewrite(self._connection, agent_step, changed, same=_FIXED, keep=_KEEP)

    def _row(self, row: KeyedRow, now: datetime) -> tuple[Any, ...]:
        stamps = pack(row.merged.stamps)
        told = row.merged.columns.get("told_duration_ms")
        values = {
            **row.merged.columns,
            "id": row.id,
            "space_id": self._space,
            "session_id": row.session_id,
            "step_key": row.key,
            "created_at": row.created_at,
            "updated_at": now,
            # A duration that was told stays, whatever is heard of the start later.
            "merged_from": stamps if told is None else _with_told(stamps, told),
        }
        return tuple([values.get(name) for name in _STEP_COLUMNS])


class SqlToolCalls:
    """Tool calls of one space; implements ``rules.ports.ToolCalls``."""

    def __init__(self, connection: Connection, space: str) -> None:
        self._connection = connection
        self._space = space

    def of(self, keys: Collection[Key]) -> dict[Key, KeyedRow]:
        """Returns those that exist, without their columns: another event replaces all of them."""
        rows = self._connection.execute(_TOOLS, _among(self._space, keys))
        return {
            key: KeyedRow(row.id, *key, Merged({}, unpack(row.merged_from)), row.created_at)
            for row in rows
            if (key := (row.session_id, row.invocation_key)) in keys
        }

    def save(self, rows: Sequence[KeyedRow], step_ids: Mapping[Key, int], now: datetime) -> None:
        """Stores new and changed rows, with the ids of those of their steps that exist."""
        new = [self._row(row, step_ids, now) for row in rows if not row.stored]
        changed = [self._row(row, step_ids, now) for row in rows if row.stored]
        _insert(self._connection, tool_invocation, new)
        rewrite(self._connection, tool_invocation, changed, same=_TOOL_FIXED)

    def adopt(self, steps: Collection[Key], now: datetime) -> None:
        """Gives tool calls that came before these steps the ids of their steps."""
        # Read first: most steps come before their tool calls, and an update would lock what it only looks at.
        found = self._connection.execute(_ORPHANS, _among(self._space, steps))
        orphans = sorted(row.id for row in found if (row.session_id, row.step_key) in steps)
        if orphans:
            self._connection.execute(_ADOPT, {"space": self._space, "orphans": orphans, "now": now})

    def _row(self, row: KeyedRow, step_ids: Mapping[Key, int], now: datetime) -> tuple[Any, ...]:
        columns = row.merged.columns
        values = {
            **columns,
            "id": row.id,
            "space_id": self._space,
            "session_id": row.session_id,
            "invocation_key": row.key,
            "step_id": step_ids.get((row.session_id, columns["step_key"])),
            "created_at": row.created_at,
            "updated_at": now,
            "merged_from": pack(row.merged.stamps),
        }
        return tuple([values[name] for name in _TOOL_COLUMNS])


def _among(space: str, keys: Collection[Key]) -> dict[str, Any]:
    sessions, own = {session_id for session_id, _ in keys}, {key for _, key in keys}
    return {"space": space, "sessions": sorted(sessions), "keys": sorted(own)}


def _insert(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    try:
        insert_rows(connection, table, rows)
    except IntegrityError as error:
        if is_duplicate(error):
            raise KeyTaken from error
        raise


def _with_told(stamps: str, duration_ms: int) -> str:
    # By hand, since most steps have it: 1.1 us against 4.8.
    return f'{{"stamps": {encode_basestring_ascii(stamps)}, "told_duration_ms": {duration_ms}}}'


def _step(row: SqlRow[Any]) -> KeyedRow:
    columns = {name: getattr(row, name) for name in _STEP_MERGED}
    columns["status"] = RunStatus(row.status)
    packed = row.merged_from
    if packed and packed.startswith("{"):
        known = json.loads(packed)
        packed, columns["told_duration_ms"] = known["stamps"], known["told_duration_ms"]
    return KeyedRow(row.id, row.session_id, row.step_key, Merged(columns, unpack(packed)), row.created_at)
