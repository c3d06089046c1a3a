"""What the contract of the tree speaks of, as small frozen values."""

import enum
from dataclasses import dataclass
from datetime import datetime

from ramet.client.values import SessionStatus

__all__ = [
    "Config",
    "DeletePolicy",
    "DeletedNodes",
    "MovedNode",
    "Node",
    "NodePage",
    "Ref",
    "TreeChange",
    "TreeChangeKind",
    "TreeEntry",
    "TreeLimits",
    "TreeNews",
    "TreePage",
    "TreeServerInfo",
]


class DeletePolicy(enum.StrEnum):
    """What becomes of the children of a deleted node."""

    REFUSE = "refuse"
    """A node with children is not deleted."""
    CASCADE = "cascade"
    """Everything below the node is deleted with it."""
    REPARENT = "reparent"
    """The children take the node's place."""


@dataclass(frozen=True)
class Node:
    """A place in the forest."""

    id: str
    """The id of the node and of its session."""
    parent_id: str | None = None
    """None: a root."""
    children: tuple[str, ...] = ()
    """The first 1,000 children by index. Filled by ``get_node`` and by writes; empty in lists."""
    refs: tuple[str, ...] = ()
    """The nodes that this one refers to."""
    depth: int = 0
    """0 for a root."""
    index: int = 0
    """The place among the siblings, or among the roots, from 0."""
    label: str = ""
    """For people."""
    source_session_id: str | None = None
    """The session that this one was forked from; kept even if that one is gone."""
    child_count: int = 0
    """How many children there are."""
    version: int = 0
    """Counts changes of label, parent and index by a move, and refs."""
    created_at: datetime | None = None
    """When it was created."""
    updated_at: datetime | None = None
    """The last change that moved version."""


@dataclass(frozen=True)
class Config:
    """Frozen config: what is fixed when a session is made, and inherited by its forks."""

    system_prompt: str | None = None
    """None: not set."""
    skills: tuple[str, ...] | None = None
    """None: not set, which is different from empty: no skills."""
    version: int = 0
    """Counts the writes of the config; 0 where none was ever given. Ignored in requests."""


@dataclass(frozen=True)
class TreeEntry:
    """A node as ``get_tree`` lists it."""

    node: Node
    """The node, without the ids of its children."""
    status: SessionStatus | None
    """None where there is no session of this id."""
    turn_count: int | None
    """None where there is no session of this id."""


@dataclass(frozen=True)
class NodePage:
    """A page of nodes."""

    nodes: tuple[Node, ...]
    """In the order of the list."""
    next_page_token: str | None
    """None: this was the last page."""


@dataclass(frozen=True)
class TreePage:
    """A page of the forest."""

    entries: tuple[TreeEntry, ...]
    """By depth, parent, index."""
    next_page_token: str | None
    """None: this was the last page."""
    position: int = 0
    """The position of the forest as the page was read; see ``watch_tree``."""


class TreeChangeKind(enum.StrEnum):
    """What became of a node."""

    CREATED = "created"
    """It was created, or the content came that it awaited."""
    UPDATED = "updated"
    """Its label, refs or config changed."""
    MOVED = "moved"
    """It has another parent or index."""
    DELETED = "deleted"
    """It was deleted."""


@dataclass(frozen=True)
class TreeChange:
    """One change of the forest."""

    position: int
    """Strictly increasing within the space, in the order of commits."""
    kind: TreeChangeKind | None
    """None: a kind that this client does not know; read the node."""
    node_id: str
    """What became of which node. Siblings that close ranks, and depths below a node that moved, are not told."""
    changed_at: datetime | None = None
    """When."""


@dataclass(frozen=True)
class TreeNews:
    """What a watch of the forest tells at once."""

    changes: tuple[TreeChange, ...]
    """In order of position; may be none."""
    through_position: int
    """All up to this position has been told: a later watch goes on after it."""


@dataclass(frozen=True)
class Ref:
    """A cross reference."""

    node_id: str
    """From this node."""
    target_id: str
    """To this one."""


@dataclass(frozen=True)
class MovedNode:
    """What a move did."""

    node: Node
    """The node at its new place."""
    removed_refs: tuple[Ref, ...]
    """Refs that the move made illegal and that are now gone; the first 1,000."""


@dataclass(frozen=True)
class DeletedNodes:
    """What a delete took away."""

    count: int
    """How many nodes were deleted."""
    node_ids: tuple[str, ...]
    """Their ids; the first 1,000."""


@dataclass(frozen=True)
class TreeLimits:
    """What SessionTree accepts."""

    max_page_size: int
    max_tree_page_size: int
    max_system_prompt_bytes: int
    request_id_hours: int
    await_content_seconds: int


@dataclass(frozen=True)
class TreeServerInfo:
    """Version and limits of a SessionTree server."""

    version: str
    """The server's version."""
    schema_revision: str
    """The revision of its database schema."""
    limits: TreeLimits
    """What it accepts."""
