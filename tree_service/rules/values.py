"""The values that rules, store and servicer hand to each other."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum, StrEnum

SHOWN_CHILDREN = 1000
"""Most ids of children that a node shows."""

REPORTED = 1000
"""Most removed refs, or deleted nodes, that a reply names."""

MAX_SKILLS = 1000
"""Most skills of a config."""


@dataclass(frozen=True)
class Node:
    """A place in the forest, as it is stored."""

    node_id: str
    parent_id: str | None
    """None for a root."""
    depth: int
    index: int
    """Place among its siblings, hidden ones counted."""
    child_count: int
    """Children, hidden ones counted; a ``ShownNode`` does not count them."""
    label: str
    source_session_id: str | None
    awaits_content: bool
    """Hidden until its session exists; such a node has neither children nor refs."""
    version: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class ShownNode:
    """A node as a reader gets it."""

    node: Node
    refs: tuple[str, ...] = ()
    """In the order in which they were added."""
    children: tuple[str, ...] = ()
    """The first of its visible children by index; empty in lists."""


@dataclass(frozen=True)
class SessionSummary:
    """What the tree may know of a session."""

    status: str
    """ACTIVE or ARCHIVED."""
    turn_count: int


@dataclass(frozen=True)
class TreeEntry:
    """A node of the forest with its session, where that exists."""

    shown: ShownNode
    session: SessionSummary | None


@dataclass(frozen=True)
class ForestRow:
    """A stored node with its session; hidden where it awaits one that does not exist."""

    node: Node
    session: SessionSummary | None

    @property
    def hidden(self) -> bool:
        """Whether no reader may see the node."""
        return self.node.awaits_content and self.session is None


@dataclass(frozen=True)
class ForestKey:
    """A place in the order of the forest: by depth, parent, index."""

    depth: int
    parent_id: str | None
    index: int


@dataclass(frozen=True)
class Config:
    """What is fixed when a session is made, and inherited by its forks."""

    system_prompt: str | None
    """None is absent, which is not empty."""
    skills: tuple[str, ...] | None
    """None is absent, which is not empty."""
    version: int = 0
    """Counts the writes of the config; 0 where none was ever given."""


@dataclass(frozen=True)
class NewNode:
    """What a client asks a node to be."""

    parent_id: str | None
    node_id: str
    """Empty: the server makes one."""
    label: str
    source_session_id: str
    """Empty: none."""
    config: Config | None
    awaits_content: bool


@dataclass(frozen=True)
class NodeFilter:
    """Which nodes a list admits; an empty text admits all."""

    label_prefix: str = ""
    source_session_id: str = ""


@dataclass(frozen=True)
class PageWish:
    """Which page a client asks for."""

    size: int
    token: str


@dataclass(frozen=True)
class NodePage:
    """A page of nodes."""

    nodes: tuple[ShownNode, ...]
    next_token: str
    """Empty on the last page."""


@dataclass(frozen=True)
class TreePage:
    """A page of the forest."""

    entries: tuple[TreeEntry, ...]
    next_token: str
    """Empty on the last page."""
    position: int
    """That of the forest as the page was read."""
    arrived: tuple[str, ...] = ()
    """Nodes of the page that are seen only because their session exists."""


class ChangeKind(StrEnum):
    """What became of a node."""

    CREATED = "CREATED"
    UPDATED = "UPDATED"
    MOVED = "MOVED"
    DELETED = "DELETED"


@dataclass(frozen=True)
class TreeChange:
    """One change of the forest."""

    position: int
    kind: ChangeKind
    node_id: str
    changed_at: datetime


@dataclass(frozen=True)
class Extent:
    """Which changes of a forest are kept: those above the floor, up to the position."""

    position: int = 0
    floor: int = 0


@dataclass(frozen=True)
class Move:
    """Where a node is to go."""

    node_id: str
    parent_id: str | None
    """None makes it a root."""
    index: int | None
    """None is the last place."""
    expected_version: int | None


@dataclass(frozen=True)
class Ref:
    """A reference across the forest."""

    node_id: str
    target_id: str


@dataclass(frozen=True)
class Moved:
    """What a move did."""

    shown: ShownNode
    removed_refs: tuple[Ref, ...]
    """The first of those that the move made illegal."""


class DeletePolicy(Enum):
    """What becomes of the children of a deleted node."""

    REFUSE = "REFUSE"
    CASCADE = "CASCADE"
    REPARENT = "REPARENT"


@dataclass(frozen=True)
class Deletion:
    """What a client asks to be deleted."""

    node_id: str
    policy: DeletePolicy
    delete_sessions: bool
    expected_version: int | None
    only_awaiting: bool = False


@dataclass(frozen=True)
class Deleted:
    """What a deletion did."""

    count: int
    node_ids: tuple[str, ...]
    """The first of them by depth, parent, index."""


@dataclass(frozen=True)
class Waiting:
    """A node that awaits its content for long."""

    space_id: str
    node_id: str


@dataclass(frozen=True)
class SessionRemoval:
    """A session that goes with its deleted node, and is not known to be gone."""

    space_id: str
    session_id: str
    origin: str
    """The incarnation that goes; a later session of the same id stays."""
    requested_at: datetime


@dataclass(frozen=True)
class Swept:
    """What a sweep of waiting nodes did."""

    settled: int
    """Nodes whose session had come."""
    deleted: int
    """Nodes whose session never came."""

    def __add__(self, other: "Swept") -> "Swept":
        """Adds the counts."""
        return Swept(self.settled + other.settled, self.deleted + other.deleted)
