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
    """Removes the last nodes of a space within a unit; where none is left what became of them, and the space itself.

    Returns how many nodes, and whether there may be more to do.
    """
    if unit.space.lock() is None:
        return 0, False
    found = forest.deepest(limit)
    if not found:
        extent = unit.changes.extent()
        if extent.floor < extent.position:
            unit.changes.forget(min(extent.floor + limit, extent.position))
            return 0, True
        forest.forget_space()
        return 0, False
    # Backwards, so that what is left of a family still counts from 0.
    going = [node_id for node_id, _ in found]
    families = Counter(parent_id for _, parent_id in found)
    for parent_id in families.keys() - set(going):
        enlarge(unit, parent_id, -families[parent_id])
    erase_nodes(unit, going[::-1], now)
    return len(going), True
