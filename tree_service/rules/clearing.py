"""Deleting the whole forest of a space, from its leaves upwards, so that it is a forest all the while."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from tree_service.rules.deletions import erase_nodes
from tree_service.rules.ports import UnitOfWork
from tree_service.rules.ranks import enlarge


class Forest(Protocol):
    """The forest of one space, as it is emptied."""

    def deepest(self, limit: int) -> Sequence[tuple[str, str | None]]:
        """Returns ids and parents of the last nodes by depth, parent, index, hidden ones among them, backwards."""
        ...

    def forget_space(self) -> None:
        """Removes the row of the space, which is locked."""
        ...


def clear_some(unit: UnitOfWork, forest: Forest, limit: int, now: datetime) -> tuple[int, bool]:
    """Removes the last nodes of a space within a unit, and at last the space itself.

    Returns how many nodes went, and whether there is more to do.
    """
    if unit.space.lock() is None:
        return 0, False
    found = forest.deepest(limit)
    if not found:
        return 0, _forget_some(unit, forest, limit)
    # Backwards, so that what is left of a family still counts from 0.
    going = [node_id for node_id, _ in reversed(found)]
    families = Counter(parent_id for _, parent_id in found)
    for parent_id in families.keys() - set(going):
        enlarge(unit, parent_id, -families[parent_id])
    erase_nodes(unit, going, now)
    return len(going), True


def _forget_some(unit: UnitOfWork, forest: Forest, limit: int) -> bool:
    """Forgets changes of a forest that has no node, the oldest first, and then the space; tells if it goes on."""
    extent = unit.changes.extent()
    if extent.floor < extent.position:
        # The floor rises with them, so that whoever watches is told.
        unit.changes.forget(min(extent.position, extent.floor + limit))
        return True
    forest.forget_space()
    return False
