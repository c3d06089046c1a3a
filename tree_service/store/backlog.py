"""The SQL of what is left to do, across all spaces."""

from collections.abc import Collection, Mapping
from datetime import datetime

from sqlalchemy import Connection, delete, select, true

from ramet_server.database.database import Database
from ramet_server.database.tables.shared import space
from ramet_server.database.tables.tree import session_removal, topology_node, tree_change
from ramet_server.domain.call import Call
from tree_service.rules.values import Extent, SessionRemoval, Waiting
from tree_service.store.rows import has_session

_s = session_removal.c
_t = topology_node.c


class SqlBacklog:
    """Implements ``rules.ports.Backlog``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def waiting(self, call: Call, before: datetime, limit: int) -> list[Waiting]:
        """Returns nodes that await their content since before that moment, the nodes of a space together."""

        def read(connection: Connection) -> list[Waiting]:
            rows = connection.execute(
                select(_t.space_id, _t.node_id)
                .where(_t.awaits_content == true(), _t.created_at < before)
                .order_by(_t.space_id, _t.parent_id)
                .limit(limit)
            )
            return [Waiting(*row) for row in rows]

        return self._database.read(call, read)

    def removals(self, call: Call, limit: int) -> list[SessionRemoval]:
        """Returns the sessions to remove, oldest request first."""

        def read(connection: Connection) -> list[SessionRemoval]:
            rows = connection.execute(
                select(_s.space_id, _s.session_id, _s.origin, _s.requested_at).order_by(_s.requested_at).limit(limit)
            )
            return [SessionRemoval(*row) for row in rows]

        return self._database.read(call, read)

    def finish(self, call: Call, removal: SessionRemoval) -> None:
        """Forgets a removal; a newer request for the same session stays."""

        def write(connection: Connection) -> None:
            connection.execute(
                delete(session_removal).where(
                    _s.space_id == removal.space_id,
                    _s.session_id == removal.session_id,
                    _s.origin == removal.origin,
                    _s.requested_at == removal.requested_at,
                )
            )

        self._database.write(call, write)

    def arrived(self, call: Call, space_ids: Collection[str], limit: int) -> list[Waiting]:
        """Returns nodes of these spaces that await their content although it has come, those of a space together."""

        def read(connection: Connection) -> list[Waiting]:
            rows = connection.execute(
                select(_t.space_id, _t.node_id)
                .where(_t.awaits_content == true(), _t.space_id.in_(space_ids), has_session)
                .order_by(_t.space_id, _t.parent_id)
                .limit(limit)
            )
            return [Waiting(*row) for row in rows]

        return self._database.read(call, read)

    def extents(self, call: Call, space_ids: Collection[str]) -> Mapping[str, Extent]:
        """Returns which changes of these spaces are kept."""
        query = select(space.c.space_id, space.c.tree_position, space.c.tree_floor).where(
            space.c.space_id.in_(space_ids)
        )

        def read(connection: Connection) -> Mapping[str, Extent]:
            return {row[0]: Extent(row[1], row[2]) for row in connection.execute(query)}

        return self._database.read(call, read)

    def old_changes(self, call: Call, before: datetime, limit: int) -> Mapping[str, int]:
        """Returns of each space with changes from before that moment the last of the first ones."""
        query = (
            select(tree_change.c.space_id, tree_change.c.position)
            .where(tree_change.c.changed_at < before)
            .order_by(tree_change.c.changed_at)
            .limit(limit)
        )

        def read(connection: Connection) -> Mapping[str, int]:
            last: dict[str, int] = {}
            for space_id, position in connection.execute(query):
                last[space_id] = max(position, last.get(space_id, 0))
            return last

        return self._database.read(call, read)
