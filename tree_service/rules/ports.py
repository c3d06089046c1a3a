"""What the rules ask of a store. Every part sees the rows of one space, the call's own."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from ramet_server.domain.call import Call
from ramet_server.domain.idempotency import RequestLog
from ramet_server.domain.idempotency import Store as UnitStore
from tree_service.rules.values import (
    ChangeKind,
    Config,
    Extent,
    ForestKey,
    ForestRow,
    Node,
    NodeFilter,
    Ref,
    SessionRemoval,
    TreeChange,
    Waiting,
)


class Space(Protocol):
    """The row that orders all changes of the forest of one space."""

    def lock(self, *, make: bool = False) -> int | None:
        """Makes every other mutation of the space wait until this unit ends; returns the number of roots.

        The first thing that any mutation does, so that none meets another half way. A space that never had a node
        has no row: it is made if that is wished, and else None is returned, so that a refused call leaves nothing.
        """
        ...

    def add_roots(self, by: int) -> None:
        """Changes the number of roots; the row is locked."""
        ...


class Nodes(Protocol):
    """Single nodes, and lists of them by index or id."""

    def find(self, node_id: str) -> Node | None:
        """Returns the node if a reader may see it."""
        ...

    def find_any(self, node_id: str) -> Node | None:
        """Returns the node, hidden or not."""
        ...

    def taken(self, node_id: str) -> bool:
        """Tells whether there is a node with this id, hidden or not, or a session that is to go with an earlier one."""
        ...

    def insert(self, node: Node, config: Config | None) -> None:
        """Stores a new node; the config, if any, with its version."""
        ...

    def save(self, node: Node) -> None:
        """Stores all of a node but its child_count, which only ``add_children`` changes."""
        ...

    def waiting(self, node_ids: Sequence[str]) -> Mapping[str, bool]:
        """Tells of those of these nodes that still await their content whether a reader sees them, as it has come."""
        ...

    def settle(self, node_ids: Sequence[str]) -> None:
        """Makes nodes visible for good."""
        ...

    def touch(self, node_ids: Collection[str], now: datetime) -> None:
        """Counts a change of each of these nodes."""
        ...

    def delete(self, node_ids: Sequence[str]) -> None:
        """Removes the rows of these nodes, and nothing else."""
        ...

    def add_children(self, parent_id: str, by: int) -> None:
        """Changes the stored number of children."""
        ...

    def shift_siblings(self, parent_id: str | None, first: int, last: int | None, by: int) -> None:
        """Moves the children (or roots) at the indexes ``first`` to ``last`` (None: to the end) by so many places."""
        ...

    def adopt(self, parent_id: str, heir_id: str | None, offset: int, now: datetime) -> None:
        """Hands all children of a node to another one (None: makes them roots), in order, from index ``offset`` on."""
        ...

    def children(self, parent_id: str | None, after_index: int, limit: int, without: str | None = None) -> list[Node]:
        """Returns visible children (or roots) by index, from the one after ``after_index`` on."""
        ...

    def child_ids(self, parent_id: str, limit: int) -> list[str]:
        """Returns the ids of the first visible children by index."""
        ...

    def hidden_children(self, parent_ids: Sequence[str]) -> Mapping[str, int]:
        """Returns how many hidden children each of these nodes has; those with none are left out."""
        ...

    def by_id(self, admits: NodeFilter, after_id: str, limit: int, examined: int) -> tuple[list[Node], str | None]:
        """Returns visible nodes that the filter admits, by id, from the one after ``after_id`` on.

        With them comes the id after which the search goes on, None where it is over: after ``limit`` hits, or
        once ``examined`` rows were looked at.
        """
        ...


class Lines(Protocol):
    """Lines of descent, up and down, however deep."""

    def ancestors(self, node_id: str, below_depth: int | None, limit: int) -> list[Node]:
        """Returns ancestors, parent first, from those above ``below_depth`` on (None: all)."""
        ...

    def ancestor_ids(self, node_id: str, down_from: int = 0) -> list[str]:
        """Returns the ids of the ancestors at the depth ``down_from`` and below, nearest first."""
        ...

    def descendant_ids(self, node_id: str) -> list[str]:
        """Returns the ids of everything below the node, hidden or not, by depth, parent, index."""
        ...

    def shift_depths(self, node_ids: Sequence[str], by: int) -> None:
        """Moves these nodes so many levels down."""
        ...

    def forest(self, after: ForestKey | None, limit: int) -> list[ForestRow]:
        """Returns nodes of the whole forest by depth, parent, index, without hidden ones."""
        ...

    def subtree(self, node_id: str, after: ForestKey | None, limit: int) -> list[ForestRow]:
        """Returns the node and what is below it by depth, parent, index, hidden ones too."""
        ...


class Refs(Protocol):
    """References across the forest."""

    def of(self, node_ids: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """Returns the targets of each node that has some, in the order in which they were added."""
        ...

    def has(self, ref: Ref) -> bool:
        """Tells whether the reference is there."""
        ...

    def add(self, ref: Ref, now: datetime) -> None:
        """Adds a reference after all others of its node."""
        ...

    def remove(self, refs: Collection[Ref]) -> None:
        """Removes these references."""
        ...

    def touching(self, node_ids: Sequence[str]) -> set[Ref]:
        """Returns all references from and to these nodes."""
        ...


class Configs(Protocol):
    """The frozen config of each node."""

    def find(self, node_id: str) -> Config | None:
        """Returns the config of a visible node; None where there is no such node."""
        ...

    def put(self, node_id: str, config: Config) -> None:
        """Replaces the config, version included."""
        ...


class Removals(Protocol):
    """Sessions that go with their nodes."""

    def request(self, node_ids: Sequence[str], now: datetime) -> None:
        """Notes the sessions of these nodes, as they are now, for removal; nodes without one are passed over."""
        ...


class Swept(Protocol):
    """Nodes that were swept while they awaited their content."""

    def keep(self, node_id: str, now: datetime) -> None:
        """Remembers a node that is about to go."""
        ...

    def find(self, node_id: str) -> Node | None:
        """Returns a swept node as it was; its depth and index have no meaning any more."""
        ...

    def restore(self, node: Node) -> bool:
        """Stores a node again, with its config, if its session exists; tells whether it did."""
        ...

    def forget(self, node_id: str) -> None:
        """Forgets a swept node, if there is one."""
        ...


class Changes(Protocol):
    """What became of the nodes that readers see, for those who watch."""

    def tell(self, kind: ChangeKind, node_ids: Sequence[str]) -> None:
        """Writes down changes, one for each node in this order; the space is locked."""
        ...

    def after(self, position: int, limit: int) -> list[TreeChange]:
        """Returns the first changes behind a position."""
        ...

    def extent(self) -> Extent:
        """Returns which changes are kept."""
        ...

    def forget(self, through: int) -> int:
        """Removes the changes up to a position, and raises the floor to it; returns how many. The space is locked."""
        ...


class UnitOfWork(Protocol):
    """One transaction over the forest of one space."""

    @property
    def requests(self) -> RequestLog:
        """The log of requests that took effect."""
        ...

    @property
    def space(self) -> Space:
        """The space itself."""
        ...

    @property
    def nodes(self) -> Nodes:
        """The nodes."""
        ...

    @property
    def lines(self) -> Lines:
        """The lines of descent."""
        ...

    @property
    def refs(self) -> Refs:
        """The references."""
        ...

    @property
    def configs(self) -> Configs:
        """The configs."""
        ...

    @property
    def removals(self) -> Removals:
        """The sessions to remove."""
        ...

    @property
    def swept(self) -> Swept:
        """The swept nodes."""
        ...

    @property
    def changes(self) -> Changes:
        """The changes."""
        ...


class Store(UnitStore[UnitOfWork], Protocol):
    """Opens units of work in the space of a call."""


class Backlog(Protocol):
    """What is left to do in all spaces, whatever that of the call; each method is a transaction of its own."""

    def waiting(self, call: Call, before: datetime, limit: int) -> list[Waiting]:
        """Returns nodes that await their content since before that moment."""
        ...

    def removals(self, call: Call, limit: int) -> list[SessionRemoval]:
        """Returns the sessions to remove, oldest request first."""
        ...

    def finish(self, call: Call, removal: SessionRemoval) -> None:
        """Forgets a removal; a newer request for the same session stays."""
        ...

    def arrived(self, call: Call, space_ids: Collection[str], limit: int) -> list[Waiting]:
        """Returns nodes of these spaces that await their content although it has come."""
        ...

    def extents(self, call: Call, space_ids: Collection[str]) -> Mapping[str, Extent]:
        """Returns which changes of these spaces are kept; without spaces that never had a node."""
        ...

    def old_changes(self, call: Call, before: datetime, limit: int) -> Mapping[str, int]:
        """Returns of each space with changes from before that moment the last of the first ones."""
        ...
