"""What a verification asks of a store; all but the removals are of one space."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from tree_service.rules.values import ChangeKind, Ref, SessionRemoval


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a node stands, as it is stored."""

    node_id: str
    parent_id: str | None
    depth: int
    index: int
    child_count: int
    awaits_content: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Family:
    """The children of one node, or the roots, counted."""

    count: int = 0
    first_index: int = 0
    last_index: int = -1
    distinct: int = 0
    """How many different indexes they have."""

    @property
    def ranked(self) -> bool:
        """Whether their indexes count from 0 without a gap."""
        return (self.first_index, self.last_index, self.distinct) == (0, self.count - 1, self.count)


@dataclass(frozen=True, slots=True)
class Changes:
    """What is kept of the changes of the forest."""

    position: int
    """The last one that the space knows of."""
    floor: int
    """Those up to here are forgotten."""
    count: int
    """Those behind the floor, up to the position, that are there."""
    last: int
    """The last one that is there, 0 where none is."""


class Audit(Protocol):
    """All that is looked at, and what may be changed to mend it."""

    def space_after(self, space: str) -> str | None:
        """Returns the next space, by name, that has rows of this service."""
        ...

    def lock(self) -> int | None:
        """Makes every other change of the space wait until this unit ends; returns the number of roots it knows."""
        ...

    def root_count(self) -> int | None:
        """Returns the number of roots that the space knows; None where it has no row."""
        ...

    def changes(self) -> Changes | None:
        """Returns what is kept of the changes of the forest; None where the space has no row."""
        ...

    def set_changes(self, position: int, floor: int) -> None:
        """Stores which changes are kept."""
        ...

    def tell(self, kind: ChangeKind, node_ids: Sequence[str]) -> None:
        """Tells those who watch the forest; nothing where the space has no row. The space is locked."""
        ...

    def make_space(self, root_count: int, now: datetime) -> None:
        """Makes the row of the space."""
        ...

    def set_root_count(self, count: int) -> None:
        """Stores another number of roots."""
        ...

    def nodes(self, after_id: str, limit: int) -> list[Standing]:
        """Returns the next nodes by id."""
        ...

    def some(self, node_ids: Collection[str]) -> Mapping[str, Standing]:
        """Returns those of these nodes that exist."""
        ...

    def families(self, parent_ids: Collection[str]) -> Mapping[str, Family]:
        """Returns the children of these nodes, counted; those without any are left out."""
        ...

    def roots(self) -> Family:
        """Returns the roots, counted."""
        ...

    def children(self, parent_ids: Sequence[str | None]) -> list[Standing]:
        """Returns the children of these nodes (None: the roots), by parent, index, time and id."""
        ...

    def ancestor_ids(self, node_id: str) -> set[str]:
        """Returns the ids of the ancestors, the node's own among them where it stands below itself."""
        ...

    def save(self, node_id: str, **values: object) -> None:
        """Stores other values of a node: depth, index, child_count, parent_id, awaits_content."""
        ...

    def delete(self, node_id: str) -> None:
        """Removes the row of a node."""
        ...

    def set_depths(self, node_ids: Sequence[str], depth: int) -> None:
        """Stores one depth for many nodes."""
        ...

    def has_session(self, node_id: str) -> bool:
        """Tells whether there is a session of this id."""
        ...

    def refs(self, after: tuple[str, str], limit: int) -> list[Ref]:
        """Returns the next references by node and target."""
        ...

    def ref(self, ref: Ref) -> bool:
        """Tells whether a reference is there."""
        ...

    def with_refs(self, node_ids: Collection[str]) -> set[str]:
        """Returns those of these nodes that refer to others, or that others refer to."""
        ...

    def remove_ref(self, ref: Ref) -> None:
        """Removes a reference."""
        ...

    def removals(self, before: datetime, after_id: str, limit: int) -> list[SessionRemoval]:
        """Returns, by session, what is to be removed since before a moment."""
        ...
