"""The SQL of diagnoses as they are merged, and of what is said of them."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Table, and_, bindparam, func, literal_column, select

from ramet_server.database.rewriting import insert_missing, rewrite
from ramet_server.database.tables.telemetry import agent_step, diagnosis_feedback, diagnosis_session, tool_invocation
from telemetry.rules.ports import DiagnosisRow, Totals, Word
from telemetry.rules.registers import Merged, pack, unpack
from telemetry.rules.values import Feedback, FeedbackValue, RunStatus
from telemetry.store.rows import self_evaluation_json

_MERGED = ("status", "agent_flow", "conversation_id", "started_at", "ended_at", "error_message", "confidence")
_FIXED = ("space_id", "session_id", "created_at")
_COLUMNS = tuple(diagnosis_session.c.keys())
_NO_TOTALS = Totals()
# Written out, since the driver puts many rows into one statement only where its end has no parameter.
_EMPTY: ColumnElement[str] = literal_column("''")

_READ = tuple(
    diagnosis_session.c[name]
    for name in ("id", "session_id", "feedback", "last_heard_at", "created_at", "merged_from", *_MERGED)
)


def _keep_told(new: ColumnElement[Any], old: ColumnElement[Any]) -> ColumnElement[Any]:
    return func.coalesce(new, old)


def _keep_said(new: ColumnElement[Any], old: ColumnElement[Any]) -> ColumnElement[Any]:
    return func.coalesce(func.nullif(new, _EMPTY), old)


_KEEP = {"self_evaluation": _keep_told, "query": _keep_said}


def _meant(table: Table) -> ColumnElement[bool]:
    return and_(table.c.space_id == bindparam("space"), table.c.session_id.in_(bindparam("ids", expanding=True)))


# Statements are built once: in a batch of one event, building them would take longer than running them.
_LOCK = (
    select(*_READ)
    .where(_meant(diagnosis_session))
    .order_by(diagnosis_session.c.session_id)
    # By another index, rows would be locked that are not meant, and in another order.
    .with_hint(diagnosis_session, "FORCE INDEX (diagnosis_session_key)", "mysql")
    .with_for_update()
)
_S, _T = agent_step.c, tool_invocation.c
_OF_STEPS = (
    select(
        _S.session_id,
        func.count().label("steps"),
        func.count(_S.token_count).label("known"),
        func.sum(_S.token_count).label("tokens"),
        func.sum(_S.cost_micros).label("cost"),
    )
    .where(_meant(agent_step))
    .group_by(_S.session_id)
)
_OF_TOOLS = select(_T.session_id, func.count().label("tools")).where(_meant(tool_invocation)).group_by(_T.session_id)
_WORDS = select(diagnosis_feedback).where(_meant(diagnosis_feedback))


class SqlDiagnoses:
    """Diagnoses of one space; implements ``rules.ports.Diagnoses``."""

    def __init__(self, connection: Connection, space: str) -> None:
        self._connection = connection
        self._space = space

    def lock(self, session_ids: Collection[str]) -> dict[str, DiagnosisRow]:
        """Returns those that exist, without their great texts, locked in the order of their ids."""
        found = self._connection.execute(_LOCK, self._among(session_ids))
        return {row.session_id: _diagnosis_row(row) for row in found}

    def insert_missing(self, rows: Sequence[DiagnosisRow]) -> bool:
        """Stores new rows where there are none of their session_id; tells whether it stored all."""
        made = [
            {
                "id": row.id,
                "space_id": self._space,
                "session_id": row.session_id,
                "status": RunStatus.PENDING,
                "last_heard_at": row.last_heard_at,
                "created_at": row.created_at,
                "updated_at": row.created_at,
                "query": "",
            }
            for row in rows
        ]
        return insert_missing(self._connection, diagnosis_session, made)

    def totals(self, session_ids: Collection[str]) -> Mapping[str, Totals]:
        """Returns what the rows of diagnoses add up to; one without any may be missing."""
        among = self._among(session_ids)
        tools = {row.session_id: row.tools for row in self._connection.execute(_OF_TOOLS, among)}
        totals = {session_id: Totals(tool_call_count=count) for session_id, count in tools.items()}
        for row in self._connection.execute(_OF_STEPS, among):
            totals[row.session_id] = Totals(
                row.steps, row.known, _int(row.tokens), _int(row.cost), tools.get(row.session_id, 0)
            )
        return totals

    def save(self, rows: Sequence[DiagnosisRow], totals: Mapping[str, Totals], now: datetime) -> None:
        """Stores locked rows, with their totals; great texts that they do not give stay."""
        values = [self._row(row, totals.get(row.session_id, _NO_TOTALS), now) for row in rows]
        rewrite(self._connection, diagnosis_session, values, same=_FIXED, keep=_KEEP)

    def _among(self, session_ids: Collection[str]) -> Mapping[str, Any]:
        return {"space": self._space, "ids": sorted(session_ids)}

    def _row(self, row: DiagnosisRow, totals: Totals, now: datetime) -> tuple[Any, ...]:
        columns = row.merged.columns
        evaluation = columns.get("self_evaluation")
        values = {
            **{name: columns.get(name) for name in _MERGED},
            "id": row.id,
            "space_id": self._space,
            "session_id": row.session_id,
            "status": columns.get("status", RunStatus.PENDING),
            "total_duration_ms": columns.get("total_duration_ms"),
            "duration_flagged": columns.get("duration_flagged", False),
            "total_token_count": totals.token_count,
            "steps_with_tokens": totals.steps_with_tokens,
            "total_cost_micros": totals.cost_micros,
            "step_count": totals.step_count,
            "tool_call_count": totals.tool_call_count,
            "feedback": row.feedback,
            "last_heard_at": row.last_heard_at,
            "created_at": row.created_at,
            "updated_at": now,
            "merged_from": pack(row.merged.stamps),
            "self_evaluation": None if evaluation is None else self_evaluation_json(evaluation),
            "query": columns.get("query", ""),
        }
        return tuple([values[name] for name in _COLUMNS])


class SqlWords:
    """Feedback in one space; implements ``rules.ports.Words``."""

    def __init__(self, connection: Connection, space: str) -> None:
        self._connection = connection
        self._space = space

    def of(self, session_ids: Collection[str]) -> list[Word]:
        """Returns all that is said of these diagnoses."""
        return [
            Word(
                row.session_id,
                Feedback(row.source, FeedbackValue(row.value), row.comment),
                row.updated_at,
                row.event_id,
            )
            for row in self._connection.execute(_WORDS, {"space": self._space, "ids": sorted(session_ids)})
        ]

    def save(self, words: Sequence[Word]) -> None:
        """Stores words, each in place of an earlier one of its source."""
        # In the order of the table's columns.
        rows = [
            (
                self._space,
                word.session_id,
                word.feedback.source,
                word.feedback.value,
                word.said_at,
                word.event_id,
                word.feedback.comment,
            )
            for word in words
        ]
        rewrite(self._connection, diagnosis_feedback, rows)


def _diagnosis_row(row: Row[Any]) -> DiagnosisRow:
    columns = {name: getattr(row, name) for name in _MERGED}
    merged = Merged(columns, unpack(row.merged_from))
    return DiagnosisRow(row.id, row.session_id, merged, row.feedback, row.last_heard_at, row.created_at)


def _int(value: Any) -> int | None:
    # MySQL adds up to a DECIMAL.
    return None if value is None else int(value)
