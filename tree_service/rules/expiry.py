"""Nodes that go with their sessions by age: only those that nothing stands below."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from tree_service.rules.deletions import erase_leaf
from tree_service.rules.ports import UnitOfWork
from tree_service.rules.values import Node


class Places(Protocol):
    """Where nodes of one space stand, hidden ones among them."""

    def depths(self, node_ids: Collection[str]) -> Mapping[str, tuple[int, int]]:
        """Returns depth and number of children of those that exist."""
        ...

    def child_ids(self, node_id: str) -> Sequence[str]:
        """Returns the ids of all children."""
        ...


class Kept(Exception):
    """Something stands below the node, so that it keeps its place; it never reaches a client."""


def lock_leaf(unit: UnitOfWork, node_id: str) -> Node | None:
    """Locks the space and returns a node, None where there is none; raises Kept where something stands below it."""
    unit.space.lock()
    node = unit.nodes.find_any(node_id)
    if node is not None and node.child_count:
        raise Kept
    return node


def take_leaf(unit: UnitOfWork, node: Node, now: datetime) -> str | None:
    """Removes what ``lock_leaf`` returned in the same unit; returns the id of its parent."""
    erase_leaf(unit, node, now)
    return node.parent_id


def going(places: Places, idle: Collection[str]) -> tuple[set[str], int]:
    """Returns which of these sessions can go, since all below their nodes goes too, and how many nodes that is."""
    left = set(idle)
    found = places.depths(idle)
    parents = sorted((name for name in found if found[name][1]), key=lambda name: found[name][0], reverse=True)
    for name in parents:
        if not left.issuperset(places.child_ids(name)):
            left.discard(name)
    return left, len(left & found.keys())
