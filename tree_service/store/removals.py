"""The SQL of sessions that go with their nodes."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, delete, insert, select

from ramet_server.database.tables.tree import session_removal, session_summary
from tree_service.store.rows import chunks

_s = session_removal.c


class SqlRemovals:
    """Implements ``rules.ports.Removals``."""

    def __init__(self, connection: Connection, space_id: str) -> None:
        self._connection = connection
        self._space_id = space_id

    def request(self, node_ids: Sequence[str], now: datetime) -> None:
        """Notes the sessions of these nodes, as they are now, for removal."""
        for some in chunks(node_ids):
            found = self._connection.execute(
                select(session_summary.c.session_id, session_summary.c.origin).where(
                    session_summary.c.space_id == self._space_id, session_summary.c.session_id.in_(some)
                )
            ).all()
            if not found:
                continue
            # An older note of the same session is of an incarnation that is gone, or of this very one.
            self._connection.execute(
                delete(session_removal).where(
                    _s.space_id == self._space_id, _s.session_id.in_([row.session_id for row in found])
                )
            )
            self._connection.execute(
                insert(session_removal),
                [
                    {
                        "space_id": self._space_id,
                        "session_id": row.session_id,
                        "origin": row.origin,
                        "requested_at": now,
                    }
                    for row in found
                ],
            )
