"""The SQL of where nodes stand, for what goes by age."""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import Connection, delete, select

from ramet_server.database.tables.shared import space
from ramet_server.database.tables.tree import topology_node
from tree_service.store.rows import children_of, chunks

_t = topology_node.c


class SqlPlaces:
    """Nodes of one space; implements ``rules.expiry.Places``."""

    def __init__(self, connection: Connection, space_id: str) -> None:
        self._connection = connection
        self._space_id = space_id

    def depths(self, node_ids: Collection[str]) -> Mapping[str, tuple[int, int]]:
        """Returns depth and number of children of those that exist."""
        found: dict[str, tuple[int, int]] = {}
        for some in chunks(sorted(node_ids)):
            wanted = select(_t.node_id, _t.depth, _t.child_count)
            rows = self._connection.execute(wanted.where(_t.space_id == self._space_id, _t.node_id.in_(some)))
            found.update((row.node_id, (row.depth, row.child_count)) for row in rows)
        return found

    def child_ids(self, node_id: str) -> Sequence[str]:
        """Returns the ids of all children."""
        wanted = select(_t.node_id).where(children_of(self._space_id, node_id))
        return list(self._connection.execute(wanted).scalars())


class SqlForest:
    """The forest of one space, as it is emptied; implements ``rules.clearing.Forest``."""

    def __init__(self, connection: Connection, space_id: str) -> None:
        self._connection = connection
        self._space_id = space_id

    def deepest(self, limit: int) -> Sequence[tuple[str, str | None]]:
        """Returns ids and parents of the last nodes by depth, parent, index, backwards."""
        order = (_t.depth.desc(), _t.parent_id.desc(), _t.index.desc())
        wanted = select(_t.node_id, _t.parent_id).where(_t.space_id == self._space_id)
        return [(row[0], row[1]) for row in self._connection.execute(wanted.order_by(*order).limit(limit))]

    def forget_space(self) -> None:
        """Removes the row of the space, which is locked."""
        self._connection.execute(delete(space).where(space.c.space_id == self._space_id))
