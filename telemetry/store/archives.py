"""The SQL of archives: diagnoses with all that belongs to them, whole rows out and in."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Table, and_, insert, select

from ramet_server.database.database import Database
from ramet_server.database.tables.telemetry import (
    agent_step,
    diagnosis_feedback,
    diagnosis_session,
    tool_invocation,
)
from ramet_server.domain.call import Call
from telemetry.rules.archiving.carrying import Carried, Numbered, Told
from telemetry.rules.archiving.columns import DIAGNOSIS, FEEDBACK, STEP, TOOL, Field, Row

_D = diagnosis_session.c
_AT_ONCE = 200

T = TypeVar("T")


class SqlCarried:
    """Rows of one space; implements ``rules.archiving.carrying.Carried``."""

    def __init__(self, connection: Connection, space: str) -> None:
        self._connection = connection
        self._space = space

    def page(self, after: Numbered | None, limit: int, conversation_id: str | None) -> list[Numbered]:
        """Returns the next diagnoses in the order of their creation, of one conversation where one is named."""
        wanted = select(_D.id, *_columns(diagnosis_session, DIAGNOSIS)).where(_D.space_id == self._space)
        if conversation_id is not None:
            wanted = wanted.where(_D.conversation_id == conversation_id)
        # One condition over both columns would not drive on the index; each of these does.
        parts: list[ColumnElement[bool]] = [_D.id.is_not(None)]
        if after is not None:
            same_time = and_(_D.created_at == after.created_at, _D.id > after.row_id)
            parts = [same_time, _D.created_at > after.created_at]
        found: list[Numbered] = []
        for part in parts:
            if len(found) < limit:
                some = wanted.where(part).order_by(_D.created_at, _D.id).limit(limit - len(found))
                found += [
                    Numbered(row["created_at"], row.pop("id"), row)
                    for row in map(dict, self._connection.execute(some).mappings())
                ]
        return found

    def parts(self, diagnosis: Row) -> Told:
        """Returns a diagnosis with all that belongs to it."""
        session_id = str(diagnosis["session_id"])
        return Told(
            diagnosis,
            self._rows(agent_step, STEP, session_id, "step_index", "id"),
            self._rows(tool_invocation, TOOL, session_id, "id"),
            self._rows(diagnosis_feedback, FEEDBACK, session_id, "source"),
        )

    def lock(self, session_id: str) -> Row | None:
        """Returns a diagnosis; nobody else changes it until this unit ends."""
        here = and_(_D.space_id == self._space, _D.session_id == session_id)
        wanted = select(*_columns(diagnosis_session, DIAGNOSIS)).where(here).with_for_update()
        row = self._connection.execute(wanted).mappings().one_or_none()
        return None if row is None else dict(row)

    def insert(self, told: Told, number: Callable[[], int]) -> None:
        """Stores a diagnosis with all that belongs to it, under new row numbers."""
        space = {"space_id": self._space}
        self._connection.execute(insert(diagnosis_session), {**told.diagnosis, **space, "id": number()})
        steps = [{**row, **space, "id": number()} for row in told.steps]
        numbers = {row["step_key"]: row["id"] for row in steps}
        tools = [{**row, **space, "id": number(), "step_id": numbers.get(row["step_key"])} for row in told.tools]
        self._insert(agent_step, steps)
        self._insert(tool_invocation, tools)
        self._insert(diagnosis_feedback, [{**row, **space} for row in told.feedback])

    def _insert(self, table: Table, rows: list[dict[str, Any]]) -> None:
        for start in range(0, len(rows), _AT_ONCE):
            self._connection.execute(insert(table), rows[start : start + _AT_ONCE])

    def _rows(self, table: Table, fields: Mapping[str, Field], session_id: str, *order: str) -> list[Row]:
        wanted = (
            select(*_columns(table, fields))
            .where(table.c.space_id == self._space, table.c.session_id == session_id)
            .order_by(*(table.c[name] for name in order))
        )
        return [dict(row) for row in self._connection.execute(wanted).mappings()]


def _columns(table: Table, fields: Mapping[str, Field]) -> list[Any]:
    return [table.c[name] for name in fields]


class SqlCarryingStore:
    """Opens units of work on a database; implements ``rules.archiving.carrying.CarryingStore``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def write(self, call: Call, fn: Callable[[Carried], T]) -> T:
        """Runs ``fn`` and commits; ``fn`` may run more than once."""
        return self._database.write(call, lambda connection: fn(SqlCarried(connection, call.space)))
