"""The SQL of lines of descent: recursive queries, and the forest in its one order.

A recursive query finds ids only, in an index; their rows are read by id, since neither database joins the
two in the right order by itself. How deep it may go is set for each connection, by the engine's policy.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import CTE, ColumnElement, Connection, Select, and_, false, or_, select, update

from ramet_server.database.tables.tree import session_summary, topology_node
from tree_service.rules.values import ForestKey, ForestRow, Node, SessionSummary
from tree_service.store.rows import NODE_COLUMNS, chunks, node_of, place

_t = topology_node.c
_ORDER = (_t.depth, _t.parent_id, _t.index)


class SqlLines:
    """Implements ``rules.ports.Lines``."""

    def __init__(self, connection: Connection, space_id: str) -> None:
        self._connection = connection
        self._space_id = space_id

    def ancestors(self, node_id: str, below_depth: int | None, limit: int) -> list[Node]:
        """Returns ancestors, parent first."""
        line = self._above(node_id, 0)
        wanted = select(line.c.parent_id).where(line.c.parent_id.is_not(None))
        if below_depth is not None:
            wanted = wanted.where(line.c.depth <= below_depth)
        page = list(self._connection.execute(wanted.order_by(line.c.depth.desc()).limit(limit)).scalars())
        found: dict[str, Node] = {}
        for some in chunks(page):
            rows = self._connection.execute(
                select(*NODE_COLUMNS).where(_t.space_id == self._space_id, _t.node_id.in_(some))
            )
            found.update((node.node_id, node) for node in map(node_of, rows))
        return [found[one] for one in page]

    def ancestor_ids(self, node_id: str, down_from: int = 0) -> list[str]:
        """Returns the ids of the ancestors at the depth ``down_from`` and below, nearest first."""
        line = self._above(node_id, down_from)
        return list(
            self._connection.execute(
                select(line.c.parent_id)
                .where(line.c.parent_id.is_not(None), line.c.depth > down_from)
                .order_by(line.c.depth.desc())
            ).scalars()
        )

    def descendant_ids(self, node_id: str) -> list[str]:
        """Returns the ids of everything below the node by depth, parent, index."""
        below = self._below(node_id)
        return list(
            self._connection.execute(
                select(below.c.node_id)
                .where(below.c.node_id != node_id)
                .order_by(below.c.depth, below.c.parent_id, below.c.index)
            ).scalars()
        )

    def shift_depths(self, node_ids: Sequence[str], by: int) -> None:
        """Moves these nodes so many levels down."""
        for some in chunks(node_ids):
            self._connection.execute(
                update(topology_node)
                .where(_t.space_id == self._space_id, _t.node_id.in_(some))
                .values(depth=_t.depth + by)
            )

    def forest(self, after: ForestKey | None, limit: int) -> list[ForestRow]:
        """Returns nodes of the whole forest by depth, parent, index, without hidden ones."""
        if after is None:
            return self._forest_part(_t.depth >= 0, limit)
        # One condition over all three columns would not drive on the index; each of these does.
        parts = [and_(_t.depth == after.depth, _t.parent_id == after.parent_id, _t.index > after.index)]
        if after.parent_id is not None:
            parts.append(and_(_t.depth == after.depth, _t.parent_id > after.parent_id))
        parts.append(_t.depth > after.depth)
        rows: list[ForestRow] = []
        for part in parts:
            if len(rows) < limit:
                rows += self._forest_part(part, limit - len(rows))
        return rows

    def subtree(self, node_id: str, after: ForestKey | None, limit: int) -> list[ForestRow]:
        """Returns the node and what is below it by depth, parent, index, hidden ones too.

        Each page walks the whole subtree, in the index only, and then reads the rows of the page.
        """
        below = self._below(node_id)
        wanted = select(below.c.node_id)
        if after is not None:
            wanted = wanted.where(_behind(below, after))
        order = (below.c.depth, below.c.parent_id, below.c.index)
        page = list(self._connection.execute(wanted.order_by(*order).limit(limit)).scalars())
        found: dict[str, ForestRow] = {}
        for some in chunks(page):
            rows = self._connection.execute(_with_session().where(_t.space_id == self._space_id, _t.node_id.in_(some)))
            found.update((row.node.node_id, row) for row in map(_forest_row, rows))
        return [found[one] for one in page]

    def _forest_part(self, where: ColumnElement[bool], limit: int) -> list[ForestRow]:
        rows = self._connection.execute(
            _with_session()
            .where(
                _t.space_id == self._space_id,
                where,
                or_(_t.awaits_content == false(), session_summary.c.session_id.is_not(None)),
            )
            .order_by(*_ORDER)
            .limit(limit)
        )
        return [_forest_row(row) for row in rows]

    def _below(self, node_id: str) -> CTE:
        """Returns the node and everything below it, with its place; the index alone answers it."""
        start = select(_t.node_id, _t.depth, _t.parent_id, _t.index).where(place(self._space_id, node_id))
        below = start.cte("below", recursive=True)
        child = topology_node.alias("child")
        return below.union_all(
            select(child.c.node_id, below.c.depth + 1, child.c.parent_id, child.c.index)
            .join_from(below, child, and_(child.c.space_id == self._space_id, child.c.parent_id == below.c.node_id))
            # While its statistics are young, MariaDB takes another index and reads the whole space for each level.
            .with_hint(child, "FORCE INDEX (topology_node_by_parent)", "mysql")
        )

    def _above(self, node_id: str, down_from: int) -> CTE:
        """Returns the node and its ancestors below the depth ``down_from``, each with its parent and depth."""
        start = select(_t.node_id, _t.parent_id, _t.depth).where(place(self._space_id, node_id))
        above = start.cte("above", recursive=True)
        parent = topology_node.alias("parent")
        return above.union_all(
            select(parent.c.node_id, parent.c.parent_id, parent.c.depth)
            .join_from(above, parent, and_(parent.c.space_id == self._space_id, parent.c.node_id == above.c.parent_id))
            .where(above.c.depth > down_from)
        )


def _behind(below: CTE, key: ForestKey) -> ColumnElement[bool]:
    """Returns the condition for all that comes after a place."""
    deeper = below.c.depth > key.depth
    if key.parent_id is None:
        # Only the node that the walk starts from can be a root.
        return deeper
    return or_(
        deeper,
        and_(
            below.c.depth == key.depth,
            or_(
                below.c.parent_id > key.parent_id,
                and_(below.c.parent_id == key.parent_id, below.c.index > key.index),
            ),
        ),
    )


def _with_session() -> Select[Any]:
    """Selects nodes with their sessions, where those exist."""
    session = session_summary.c
    return select(*NODE_COLUMNS, session.status, session.turn_count).outerjoin_from(
        topology_node, session_summary, and_(session.space_id == _t.space_id, session.session_id == _t.node_id)
    )


def _forest_row(row: Sequence[Any]) -> ForestRow:
    *_, status, turn_count = row
    return ForestRow(node_of(row), None if status is None else SessionSummary(status, turn_count))
