"""The SQL that finds changed rows, by an index alone."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, or_, select

from ramet_server.database.tables.telemetry import agent_step, diagnosis_session, tool_invocation
from telemetry.rules.tail_queries import Change, ChangePlace, Kind

_TABLES = {Kind.DIAGNOSIS: diagnosis_session, Kind.STEP: agent_step, Kind.TOOL: tool_invocation}


class SqlChanges:
    """The changes of one space; implements ``rules.answer_ports.Changes``."""

    def __init__(self, connection: Connection, space: str) -> None:
        self._connection = connection
        self._space = space

    def since(self, kind: Kind, since: datetime, after: ChangePlace | None, limit: int) -> Sequence[Change]:
        """Returns the rows of a kind that changed at a moment or later, oldest first."""
        t = _TABLES[kind].c
        statement = select(t.id, t.updated_at).where(t.space_id == self._space)
        if after is None:
            statement = statement.where(t.updated_at >= since)
        else:
            later = or_(t.updated_at > after.updated_at, t.id > after.id)
            statement = statement.where(t.updated_at >= after.updated_at, later)
        statement = statement.order_by(t.updated_at, t.id).limit(limit)
        return [Change(kind, row.id, row.updated_at) for row in self._connection.execute(statement)]
