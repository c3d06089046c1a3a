"""The SQL of sessions by the time at which they were made."""

from datetime import datetime

from sqlalchemy import select

from ramet_server.database.database import Database
from ramet_server.database.tables.session import session
from ramet_server.domain.call import Call

_S = session.c


class SqlBegun:
    """Implements ``rules.clearing.Begun``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def through(self, call: Call, moment: datetime, limit: int) -> list[tuple[str, str]]:
        """Returns ids and origins of some sessions of the call's space that were made no later than a moment."""
        wanted = select(_S.session_id, _S.origin).where(_S.space_id == call.space, _S.created_at <= moment)
        ordered = wanted.order_by(_S.created_at, _S.session_id).limit(limit)
        return self._database.read(call, lambda connection: [(row[0], row[1]) for row in connection.execute(ordered)])
