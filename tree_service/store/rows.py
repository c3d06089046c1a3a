"""What statements over nodes share: the columns that lists read, and who may be seen."""

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, false, or_, select

from ramet_server.database.tables.tree import session_summary, topology_node
from tree_service.rules.values import Node

CHUNK = 1000
"""Ids of one statement; SQLite takes some 32,000 values, and long statements are slow to parse."""

# All but the config, which may be megabytes.
NODE_COLUMNS = (
    topology_node.c.node_id,
    topology_node.c.parent_id,
    topology_node.c.depth,
    topology_node.c.index,
    topology_node.c.child_count,
    topology_node.c.label,
    topology_node.c.source_session_id,
    topology_node.c.awaits_content,
    topology_node.c.version,
    topology_node.c.created_at,
    topology_node.c.updated_at,
)

# Not EXISTS: MariaDB may answer that by reading all sessions first. This it looks up, and only where it must.
_session_id = (
    select(session_summary.c.session_id)
    .where(
        session_summary.c.space_id == topology_node.c.space_id,
        session_summary.c.session_id == topology_node.c.node_id,
    )
    .scalar_subquery()
)

has_session: ColumnElement[bool] = _session_id.is_not(None)
"""Whether the node's session exists."""

has_no_session: ColumnElement[bool] = _session_id.is_(None)
"""Whether it does not."""

may_be_seen: ColumnElement[bool] = or_(topology_node.c.awaits_content == false(), has_session)
"""Whether a reader may see the node."""


def place(space_id: str, node_id: str) -> ColumnElement[bool]:
    """Returns the condition for one node."""
    return and_(topology_node.c.space_id == space_id, topology_node.c.node_id == node_id)


def children_of(space_id: str, parent_id: str | None) -> ColumnElement[bool]:
    """Returns the condition for the children of a node, or for the roots."""
    # SQLAlchemy turns a comparison with None into IS NULL, which both backends look up in the index.
    return and_(topology_node.c.space_id == space_id, topology_node.c.parent_id == parent_id)


def node_of(row: Sequence[Any]) -> Node:
    """Returns the node of a row that begins with ``NODE_COLUMNS``."""
    return Node(*row[: len(NODE_COLUMNS)])


def chunks(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Cuts ids into pieces for one statement each."""
    for start in range(0, len(ids), CHUNK):
        yield ids[start : start + CHUNK]
