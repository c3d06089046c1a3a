"""The SQL of single nodes, and of lists by index or id."""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, select, true, update

from ramet_server.database.tables.tree import session_removal, session_summary, topology_node
from tree_service.rules.values import Config, Node, NodeFilter
from tree_service.store.rows import (
    NODE_COLUMNS,
    children_of,
    chunks,
    has_no_session,
    has_session,
    may_be_seen,
    node_of,
    place,
)

_t = topology_node.c


class SqlNodes:
    """Implements ``rules.ports.Nodes``."""

    def __init__(self, connection: Connection, space_id: str) -> None:
        self._connection = connection
        self._space_id = space_id

    def find(self, node_id: str) -> Node | None:
        """Returns the node if a reader may see it."""
        return self._one(place(self._space_id, node_id) & may_be_seen)

    def find_any(self, node_id: str) -> Node | None:
        """Returns the node, hidden or not."""
        return self._one(place(self._space_id, node_id))

    def taken(self, node_id: str) -> bool:
        """Tells whether there is a node with this id, or a session that is to go with an earlier one."""
        node = select(_t.node_id).where(place(self._space_id, node_id))
        going = (
            select(session_removal.c.session_id)
            .join(
                session_summary,
                and_(
                    session_summary.c.space_id == session_removal.c.space_id,
                    session_summary.c.session_id == session_removal.c.session_id,
                    session_summary.c.origin == session_removal.c.origin,
                ),
            )
            .where(session_removal.c.space_id == self._space_id, session_removal.c.session_id == node_id)
        )
        found = self._connection.execute(select(node.scalar_subquery(), going.scalar_subquery())).one()
        return any(one is not None for one in found)

    def insert(self, node: Node, config: Config | None) -> None:
        """Stores a new node."""
        self._connection.execute(
            insert(topology_node).values(
                space_id=self._space_id,
                node_id=node.node_id,
                parent_id=node.parent_id,
                depth=node.depth,
                index=node.index,
                child_count=node.child_count,
                label=node.label,
                source_session_id=node.source_session_id,
                awaits_content=node.awaits_content,
                version=node.version,
                created_at=node.created_at,
                updated_at=node.updated_at,
                **config_values(config or Config(None, None)),
            )
        )

    def save(self, node: Node) -> None:
        """Stores all that may change of a node but its child_count."""
        self._update(
            place(self._space_id, node.node_id),
            parent_id=node.parent_id,
            depth=node.depth,
            index=node.index,
            label=node.label,
            awaits_content=node.awaits_content,
            version=node.version,
            updated_at=node.updated_at,
        )

    def waiting(self, node_ids: Sequence[str]) -> Mapping[str, bool]:
        """Tells of those of these nodes that still await their content whether it has come."""
        found: dict[str, bool] = {}
        for some in chunks(node_ids):
            rows = self._connection.execute(
                select(_t.node_id, has_session).where(
                    _t.space_id == self._space_id, _t.node_id.in_(some), _t.awaits_content == true()
                )
            )
            found.update((row[0], bool(row[1])) for row in rows)
        return found

    def settle(self, node_ids: Sequence[str]) -> None:
        """Makes nodes visible for good."""
        for some in chunks(node_ids):
            self._update(and_(_t.space_id == self._space_id, _t.node_id.in_(some)), awaits_content=False)

    def touch(self, node_ids: Collection[str], now: datetime) -> None:
        """Counts a change of each of these nodes."""
        for some in chunks(sorted(node_ids)):
            self._update(
                and_(_t.space_id == self._space_id, _t.node_id.in_(some)), version=_t.version + 1, updated_at=now
            )

    def delete(self, node_ids: Sequence[str]) -> None:
        """Removes the rows of these nodes."""
        for some in chunks(node_ids):
            self._connection.execute(delete(topology_node).where(_t.space_id == self._space_id, _t.node_id.in_(some)))

    def add_children(self, parent_id: str, by: int) -> None:
        """Changes the stored number of children."""
        self._update(place(self._space_id, parent_id), child_count=_t.child_count + by)

    def shift_siblings(self, parent_id: str | None, first: int, last: int | None, by: int) -> None:
        """Moves the children (or roots) at these indexes by so many places."""
        if by == 0:
            return
        where = children_of(self._space_id, parent_id) & (_t.index >= first)
        if last is not None:
            where &= _t.index <= last
        self._update(where, index=_t.index + by)

    def adopt(self, parent_id: str, heir_id: str | None, offset: int, now: datetime) -> None:
        """Hands all children of a node to another one, in order, from index ``offset`` on."""
        self._update(
            children_of(self._space_id, parent_id),
            parent_id=heir_id,
            index=_t.index + offset,
            version=_t.version + 1,
            updated_at=now,
        )

    def children(self, parent_id: str | None, after_index: int, limit: int, without: str | None = None) -> list[Node]:
        """Returns visible children (or roots) by index."""
        where = and_(children_of(self._space_id, parent_id), _t.index > after_index, may_be_seen)
        if without is not None:
            where &= _t.node_id != without
        rows = self._connection.execute(select(*NODE_COLUMNS).where(where).order_by(_t.index).limit(limit))
        return [node_of(row) for row in rows]

    def child_ids(self, parent_id: str, limit: int) -> list[str]:
        """Returns the ids of the first visible children by index."""
        return list(
            self._connection.execute(
                select(_t.node_id)
                .where(children_of(self._space_id, parent_id), may_be_seen)
                .order_by(_t.index)
                .limit(limit)
            ).scalars()
        )

    def hidden_children(self, parent_ids: Sequence[str]) -> Mapping[str, int]:
        """Returns how many hidden children each of these nodes has, if any."""
        hidden: dict[str, int] = {}
        for some in chunks(parent_ids):
            rows = self._connection.execute(
                select(_t.parent_id, func.count())
                .where(
                    _t.awaits_content == true(),
                    _t.space_id == self._space_id,
                    _t.parent_id.in_(some),
                    has_no_session,
                )
                .group_by(_t.parent_id)
            )
            hidden.update((row[0], row[1]) for row in rows if row[0] is not None)
        return hidden

    def by_id(self, admits: NodeFilter, after_id: str, limit: int, examined: int) -> tuple[list[Node], str | None]:
        """Returns visible nodes that the filter admits, and the id after which the search goes on."""
        driven = and_(_t.space_id == self._space_id, _t.node_id > after_id)
        if admits.source_session_id:
            driven &= _t.source_session_id == admits.source_session_id
        # The last row to look at; a filter that admits little must not read the whole space at once.
        last_id: str | None = self._connection.execute(
            select(_t.node_id).where(driven).order_by(_t.node_id).offset(examined - 1).limit(1)
        ).scalar_one_or_none()
        where = driven & may_be_seen
        if last_id is not None:
            where &= _t.node_id <= last_id
        if admits.label_prefix:
            where &= _begins_with(_t.label, admits.label_prefix)
        rows = self._connection.execute(select(*NODE_COLUMNS).where(where).order_by(_t.node_id).limit(limit + 1)).all()
        nodes = [node_of(row) for row in rows[:limit]]
        return nodes, nodes[-1].node_id if len(rows) > limit else last_id

    def _one(self, where: ColumnElement[bool]) -> Node | None:
        row = self._connection.execute(select(*NODE_COLUMNS).where(where)).one_or_none()
        return None if row is None else node_of(row)

    def _update(self, where: ColumnElement[bool], **values: object) -> None:
        self._connection.execute(update(topology_node).where(where).values(**values))


def config_values(config: Config) -> dict[str, object]:
    """Returns the columns of a config."""
    return {
        "config_system_prompt": config.system_prompt,
        "config_skills_json": None if config.skills is None else json.dumps(config.skills, ensure_ascii=False),
        "config_version": config.version,
    }


def _begins_with(column: ColumnElement[str], prefix: str) -> ColumnElement[bool]:
    """Compares exactly: LIKE alone folds ASCII case on SQLite, and ``=`` alone pads with spaces on MySQL."""
    return and_(column.startswith(prefix, autoescape=True), func.substr(column, 1, len(prefix)) == prefix)
