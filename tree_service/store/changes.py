"""The SQL of what became of nodes."""

from collections.abc import Sequence

from sqlalchemy import Connection, delete, insert, select, update

from ramet_server.database.moved import note
from ramet_server.database.tables.shared import space
from ramet_server.database.tables.tree import tree_change
from ramet_server.domain.clock import Clock
from tree_service.rules.values import ChangeKind, Extent, TreeChange
from tree_service.store.rows import chunks
from tree_service.store.spaces import SqlSpace

FOREST = "forest"
"""The kind of topic under which it is told that a forest changed; the key is its space."""

_c = tree_change.c


class SqlChanges:
    """Implements ``rules.ports.Changes``."""

    def __init__(self, connection: Connection, space_id: str, locked: SqlSpace, clock: Clock) -> None:
        self._connection = connection
        self._space_id = space_id
        self._locked = locked
        self._clock = clock

    def tell(self, kind: ChangeKind, node_ids: Sequence[str]) -> None:
        """Writes down changes, one for each node in this order."""
        if not node_ids:
            return
        position = self._locked.tree_position
        if position is None:
            raise AssertionError("A change of the forest locks its space first.")
        now = self._clock.now()
        for some in chunks(node_ids):
            rows = [
                {"space_id": self._space_id, "position": at, "kind": kind, "node_id": node_id, "changed_at": now}
                for at, node_id in enumerate(some, start=position + 1)
            ]
            self._connection.execute(insert(tree_change), rows)
            position += len(some)
        self._connection.execute(update(space).where(space.c.space_id == self._space_id).values(tree_position=position))
        self._locked.tree_position = position
        note(self._connection, FOREST, self._space_id)

    def after(self, position: int, limit: int) -> list[TreeChange]:
        """Returns the first changes behind a position."""
        rows = self._connection.execute(
            select(_c.position, _c.kind, _c.node_id, _c.changed_at)
            .where(_c.space_id == self._space_id, _c.position > position)
            .order_by(_c.position)
            .limit(limit)
        )
        return [TreeChange(row.position, ChangeKind(row.kind), row.node_id, row.changed_at) for row in rows]

    def extent(self) -> Extent:
        """Returns which changes are kept."""
        row = self._connection.execute(
            select(space.c.tree_position, space.c.tree_floor).where(space.c.space_id == self._space_id)
        ).one_or_none()
        return Extent() if row is None else Extent(*row)

    def forget(self, through: int) -> int:
        """Removes the changes up to a position, and raises the floor to it."""
        here = (space.c.space_id == self._space_id) & (space.c.tree_floor < through)
        self._connection.execute(update(space).where(here).values(tree_floor=through))
        gone = delete(tree_change).where(_c.space_id == self._space_id, _c.position <= through)
        return self._connection.execute(gone).rowcount
