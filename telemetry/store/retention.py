"""The SQL of what goes: old diagnoses, those of deleted conversations, and what ingest no longer needs."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Table, and_, delete, func, select, update

from ramet_server.database.database import Database
from ramet_server.database.tables.telemetry import (
    agent_step,
    diagnosis_feedback,
    diagnosis_session,
    tool_invocation,
)
from ramet_server.domain.call import Call
from telemetry.rules.retention import Conversation, Remains

_D = diagnosis_session.c
_PARTS = (tool_invocation, agent_step, diagnosis_feedback)

T = TypeVar("T")


class SqlRemains:
    """Rows that may have to go; implements ``rules.retention.Remains``."""

    def __init__(self, connection: Connection, space: str) -> None:
        self._connection = connection
        self._space = space

    def expired(self, before: datetime, limit: int) -> Sequence[str]:
        """Returns diagnoses whose last change lies before a moment, oldest first."""
        old = self._old(before)
        return self._ids(select(_D.session_id).where(*old).order_by(_D.updated_at, _D.id).limit(limit))

    def of_conversation(self, conversation: Conversation, limit: int) -> Sequence[str]:
        """Returns diagnoses of a conversation."""
        mine = self._of(conversation)
        return self._ids(select(_D.session_id).where(*mine).order_by(_D.created_at, _D.id).limit(limit))

    def delete_expired(self, session_ids: Sequence[str], before: datetime) -> int:
        """Deletes those that are still as old, with all that belongs to them; returns how many."""
        return self._delete(session_ids, self._old(before))

    def delete_of(self, session_ids: Sequence[str], conversation: Conversation) -> int:
        """Deletes those that still belong to a conversation, with all that belongs to them; returns how many."""
        return self._delete(session_ids, self._of(conversation))

    def begun(self, through: datetime, limit: int) -> Sequence[str]:
        """Returns diagnoses that were made no later than a moment, oldest first."""
        mine = self._begun(through)
        return self._ids(select(_D.session_id).where(*mine).order_by(_D.created_at, _D.id).limit(limit))

    def delete_begun(self, session_ids: Sequence[str], through: datetime) -> int:
        """Deletes those that were made no later than a moment, with all that belongs to them; returns how many."""
        return self._delete(session_ids, self._begun(through))

    def detach(self, session_ids: Sequence[str], conversation: Conversation) -> int:
        """Lets those name no conversation that name this one; returns how many."""
        # Not a change of what was told, so its time stays; MySQL would set it by itself.
        changed = {"conversation_id": None, "updated_at": _D.updated_at}
        here = _D.session_id.in_(session_ids)
        return self._connection.execute(
            update(diagnosis_session).where(here, *self._of(conversation)).values(changed)
        ).rowcount

    def count_expired(self, before: datetime) -> tuple[int, int, int]:
        """Counts diagnoses that are too old, their steps and their tool calls."""
        old = self._old(before)
        diagnoses = self._count(select(func.count()).select_from(diagnosis_session).where(*old))
        return diagnoses, self._count_parts(agent_step, old), self._count_parts(tool_invocation, old)

    def count_of(self, conversation: Conversation) -> int:
        """Counts diagnoses of a conversation."""
        return self._count(select(func.count()).select_from(diagnosis_session).where(*self._of(conversation)))

    def space_after(self, space: str) -> str | None:
        """Returns the next space, by name, that has diagnoses."""
        found: str | None = self._connection.execute(
            select(func.min(_D.space_id)).where(_D.space_id > space)
        ).scalar_one()
        return found

    def _delete(self, session_ids: Sequence[str], still: Sequence[ColumnElement[bool]]) -> int:
        # Under the locks that ingest takes, in its order, so that nothing is told of them meanwhile.
        locked = select(_D.session_id).where(_D.session_id.in_(session_ids), *still)
        ids = self._ids(locked.order_by(_D.id).with_for_update())
        if not ids:
            return 0
        for table in (*_PARTS, diagnosis_session):
            self._connection.execute(delete(table).where(table.c.space_id == self._space, table.c.session_id.in_(ids)))
        return len(ids)

    def _old(self, before: datetime) -> list[ColumnElement[bool]]:
        return [_D.space_id == self._space, _D.updated_at < before]

    def _of(self, conversation: Conversation) -> list[ColumnElement[bool]]:
        return [
            _D.space_id == self._space,
            _D.conversation_id == conversation.conversation_id,
            _D.created_at <= conversation.deleted_at,
        ]

    def _begun(self, through: datetime) -> list[ColumnElement[bool]]:
        return [_D.space_id == self._space, _D.created_at <= through]

    def _ids(self, statement: Any) -> Sequence[str]:
        return list(self._connection.execute(statement).scalars())

    def _count(self, statement: Any) -> int:
        return int(self._connection.execute(statement).scalar_one())

    def _count_parts(self, table: Table, old: Sequence[ColumnElement[bool]]) -> int:
        same = and_(table.c.space_id == _D.space_id, table.c.session_id == _D.session_id)
        return self._count(select(func.count()).select_from(diagnosis_session.join(table, same)).where(*old))


class SqlRetentionStore:
    """Opens units of work; implements ``rules.retention.RetentionStore``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, call: Call, fn: Callable[[Remains], T]) -> T:
        """Runs ``fn`` over committed rows."""
        return self._database.read(call, lambda connection: fn(SqlRemains(connection, call.space)))

    def write(self, call: Call, fn: Callable[[Remains], T]) -> T:
        """Runs ``fn`` and commits; ``fn`` may run more than once."""
        return self._database.write(call, lambda connection: fn(SqlRemains(connection, call.space)))
