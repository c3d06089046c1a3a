"""The SQL of a verification of one space's telemetry."""

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Table, and_, delete, func, or_, select, update

from ramet_server.database.tables.telemetry import agent_step, diagnosis_feedback, diagnosis_session, tool_invocation
from telemetry.rules.ports import Totals
from telemetry.rules.verifying.ports import Told
from telemetry.store.merged_diagnoses import SqlDiagnoses

_D, _S, _I, _W = diagnosis_session.c, agent_step.c, tool_invocation.c, diagnosis_feedback.c
_PARTS: Mapping[str, Table] = {table.name: table for table in (agent_step, tool_invocation, diagnosis_feedback)}
_TOTALS = (_D.step_count, _D.steps_with_tokens, _D.total_token_count, _D.total_cost_micros, _D.tool_call_count)

# The step that a tool call names, where it has come.
_ITS_STEP = (
    select(_S.id)
    .where(_S.space_id == _I.space_id, _S.session_id == _I.session_id, _S.step_key == _I.step_key)
    .correlate(tool_invocation)
    .scalar_subquery()
)
_UNLINKED = or_(
    and_(_I.step_id.is_(None), _ITS_STEP.is_not(None)),
    and_(_I.step_id.is_not(None), func.coalesce(_ITS_STEP, -1) != _I.step_id),
)


class SqlAudit:
    """All that is looked at; implements ``rules.verifying.ports.Audit``."""

    def __init__(self, connection: Connection, space: str) -> None:
        self._connection = connection
        self._space = space

    def space_after(self, space: str) -> str | None:
        """Returns the next space, by name, that has rows of this service."""
        found = [
            self._connection.execute(select(func.min(t.c.space_id)).where(t.c.space_id > space)).scalar_one()
            for t in (diagnosis_session, *_PARTS.values())
        ]
        return min((each for each in found if each is not None), default=None)

    def diagnoses(self, after_id: str, limit: int) -> list[Told]:
        """Returns the next diagnoses by session_id."""
        wanted = _told().where(_D.space_id == self._space, _D.session_id > after_id)
        return [_of(row) for row in self._connection.execute(wanted.order_by(_D.session_id).limit(limit))]

    def lock(self, session_id: str) -> Told | None:
        """Returns a diagnosis; nothing is merged into it until this unit ends."""
        row = self._connection.execute(_told().where(*self._this(session_id)).with_for_update()).one_or_none()
        return None if row is None else _of(row)

    def totals(self, session_ids: Collection[str]) -> Mapping[str, Totals]:
        """Returns what the rows of diagnoses add up to; one without any may be missing."""
        return SqlDiagnoses(self._connection, self._space).totals(session_ids) if session_ids else {}

    def feedback(self, session_ids: Collection[str]) -> Mapping[str, str]:
        """Returns the latest word on each diagnosis of which something is said."""
        if not session_ids:
            return {}
        here = and_(_W.space_id == self._space, _W.session_id.in_(sorted(session_ids)))
        wanted = select(_W.session_id, _W.value).where(here)
        # The last one of each stays; of two words of one moment the greater event decides, as in ingest.
        rows = self._connection.execute(wanted.order_by(_W.session_id, _W.updated_at, _W.event_id))
        return {row[0]: row[1] for row in rows}

    def save_totals(self, session_id: str, totals: Totals) -> None:
        """Stores other totals; it counts as no change of the diagnosis."""
        self._save(
            session_id,
            step_count=totals.step_count,
            steps_with_tokens=totals.steps_with_tokens,
            total_token_count=totals.token_count,
            total_cost_micros=totals.cost_micros,
            tool_call_count=totals.tool_call_count,
        )

    def save_feedback(self, session_id: str, value: str | None) -> None:
        """Stores another latest word; it counts as no change of the diagnosis."""
        self._save(session_id, feedback=value)

    def strays(self, part: str, after_id: str, limit: int) -> list[tuple[str, int]]:
        """Returns the next session ids that have rows of a part but no diagnosis."""
        c = _PARTS[part].c
        same = and_(_D.space_id == c.space_id, _D.session_id == c.session_id)
        wanted = (
            select(c.session_id, func.count())
            .outerjoin_from(_PARTS[part], diagnosis_session, same)
            .where(c.space_id == self._space, c.session_id > after_id, _D.session_id.is_(None))
        )
        return self._pairs(wanted, c.session_id, limit)

    def delete_strays(self, part: str, session_id: str) -> None:
        """Removes what a part holds of a diagnosis that does not exist."""
        c = _PARTS[part].c
        here = and_(c.space_id == self._space, c.session_id == session_id)
        self._connection.execute(delete(_PARTS[part]).where(here))

    def unlinked(self, after_id: str, limit: int) -> list[tuple[str, int]]:
        """Returns the next session ids with tool calls that do not have the id of their step."""
        here = and_(_I.space_id == self._space, _I.session_id > after_id, _UNLINKED)
        return self._pairs(select(_I.session_id, func.count()).where(here), _I.session_id, limit)

    def is_unlinked(self, session_id: str) -> int:
        """Returns how many tool calls of a diagnosis do not have the id of their step."""
        here = and_(_I.space_id == self._space, _I.session_id == session_id, _UNLINKED)
        return int(self._connection.execute(select(func.count()).select_from(tool_invocation).where(here)).scalar_one())

    def link(self, session_id: str) -> None:
        """Gives the tool calls of a diagnosis the ids of their steps."""
        here = and_(_I.space_id == self._space, _I.session_id == session_id)
        rows = self._connection.execute(select(_I.id, _ITS_STEP).where(here, _UNLINKED)).all()
        for row_id, step_id in rows:
            changed = {"step_id": step_id, "updated_at": _I.updated_at}
            self._connection.execute(update(tool_invocation).where(_I.id == row_id).values(changed))

    def _save(self, session_id: str, **values: object) -> None:
        # MySQL would set the time of the last change by itself.
        changed = {**values, "updated_at": _D.updated_at}
        self._connection.execute(update(diagnosis_session).where(*self._this(session_id)).values(changed))

    def _this(self, session_id: str) -> tuple[ColumnElement[bool], ...]:
        return _D.space_id == self._space, _D.session_id == session_id

    def _pairs(self, wanted: Select[Any], key: ColumnElement[str], limit: int) -> list[tuple[str, int]]:
        rows = self._connection.execute(wanted.group_by(key).order_by(key).limit(limit))
        return [(row[0], row[1]) for row in rows]


def _told() -> Select[Any]:
    return select(_D.session_id, _D.feedback, *_TOTALS)


def _of(row: Any) -> Told:
    session_id, feedback, *totals = row
    return Told(session_id, Totals(*totals), feedback)
