"""Places among siblings: they count from 0 without gaps, whatever comes, goes or moves.

All of it runs under the lock of the space, so that no two changes count from the same state.
"""

from tree_service.rules.ports import UnitOfWork
from tree_service.rules.values import Node


def enlarge(unit: UnitOfWork, parent_id: str | None, by: int) -> None:
    """Counts children that a parent, or the space, has more (or fewer)."""
    if parent_id is None:
        unit.space.add_roots(by)
    else:
        unit.nodes.add_children(parent_id, by)


def close_ranks(unit: UnitOfWork, leaving: Node) -> None:
    """Lets the siblings behind a node move up; the node itself is to be moved or deleted next."""
    unit.nodes.shift_siblings(leaving.parent_id, leaving.index + 1, None, -1)
    enlarge(unit, leaving.parent_id, -1)


def open_ranks(unit: UnitOfWork, parent_id: str | None, index: int, width: int = 1) -> None:
    """Makes room for ``width`` nodes at an index."""
    unit.nodes.shift_siblings(parent_id, index, None, width)
    enlarge(unit, parent_id, width)


def reorder(unit: UnitOfWork, node: Node, index: int) -> None:
    """Makes room for a node at another index under its own parent."""
    if index > node.index:
        unit.nodes.shift_siblings(node.parent_id, node.index + 1, index, -1)
    elif index < node.index:
        unit.nodes.shift_siblings(node.parent_id, index, node.index - 1, 1)
