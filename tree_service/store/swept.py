"""The SQL of nodes that were swept while they awaited their content."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, literal, or_, select

from ramet_server.database.database import Database
from ramet_server.database.tables.tree import session_summary, swept_node, topology_node
from ramet_server.domain.call import Call
from tree_service.rules.values import Node, Waiting

_t, _w, _s = topology_node.c, swept_node.c, session_summary.c
_KEPT = ("parent_id", "label", "source_session_id", "config_version", "version", "created_at")
_CONFIG = ("config_system_prompt", "config_skills_json")
_SESSION = and_(_s.space_id == _w.space_id, _s.session_id == _w.node_id)


class SqlSwept:
    """Swept nodes of one space; implements ``rules.ports.Swept``."""

    def __init__(self, connection: Connection, space_id: str) -> None:
        self._connection = connection
        self._space_id = space_id

    def keep(self, node_id: str, now: datetime) -> None:
        """Remembers a node that is about to go."""
        self.forget(node_id)
        names = ("space_id", "node_id", *_KEPT, *_CONFIG)
        here = and_(_t.space_id == self._space_id, _t.node_id == node_id)
        row = select(*(_t[name] for name in names), literal(now, _w.swept_at.type)).where(here)
        self._connection.execute(insert(swept_node).from_select([*names, "swept_at"], row))

    def find(self, node_id: str) -> Node | None:
        """Returns a swept node as it was; its depth and index have no meaning any more."""
        row = self._connection.execute(select(*(_w[name] for name in _KEPT)).where(self._here(node_id))).one_or_none()
        if row is None:
            return None
        return Node(
            node_id=node_id,
            parent_id=row.parent_id,
            depth=0,
            index=0,
            child_count=0,
            label=row.label,
            source_session_id=row.source_session_id,
            awaits_content=False,
            version=row.version,
            created_at=row.created_at,
            updated_at=row.created_at,
        )

    def restore(self, node: Node) -> bool:
        """Stores a node again, with its config, if its session exists; tells whether it did."""
        values = {
            "space_id": self._space_id,
            "node_id": node.node_id,
            "parent_id": node.parent_id,
            "depth": node.depth,
            "index": node.index,
            "child_count": 0,
            "label": node.label,
            "source_session_id": node.source_session_id,
            "awaits_content": False,
            "version": node.version,
            "created_at": node.created_at,
            "updated_at": node.updated_at,
        }
        kept = ("config_version", *_CONFIG)
        row = (
            select(*(literal(value, _t[name].type) for name, value in values.items()), *(_w[name] for name in kept))
            .join_from(swept_node, session_summary, _SESSION)
            .where(self._here(node.node_id))
        )
        return self._connection.execute(insert(topology_node).from_select([*values, *kept], row)).rowcount > 0

    def forget(self, node_id: str) -> None:
        """Forgets a swept node, if there is one."""
        self._connection.execute(delete(swept_node).where(self._here(node_id)))

    def _here(self, node_id: str) -> ColumnElement[bool]:
        return and_(_w.space_id == self._space_id, _w.node_id == node_id)


class SqlLatecomers:
    """Swept nodes of all spaces; implements ``rules.latecomers.Latecomers``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def come(self, call: Call, limit: int) -> Sequence[Waiting]:
        """Returns swept nodes whose sessions came, longest swept first."""
        wanted = select(_w.space_id, _w.node_id).join_from(swept_node, session_summary, _SESSION)
        ordered = wanted.order_by(_w.swept_at).limit(limit)
        return self._database.read(call, lambda connection: [Waiting(*row) for row in connection.execute(ordered)])

    def forget(self, call: Call, before: datetime, limit: int) -> int:
        """Forgets nodes that were swept before a moment; returns how many."""

        def write(connection: Connection) -> int:
            old = select(_w.space_id, _w.node_id).where(_w.swept_at < before).order_by(_w.swept_at).limit(limit)
            rows = connection.execute(old).all()
            keys = [and_(_w.space_id == space_id, _w.node_id == node_id) for space_id, node_id in rows]
            return connection.execute(delete(swept_node).where(or_(*keys))).rowcount if keys else 0

        return self._database.write(call, write)
