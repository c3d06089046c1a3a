"""Moving a node with everything below it."""

from dataclasses import replace

from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.errors import InvalidField, MoveMakesCycle
from ramet_server.domain.idempotency import Mutation, Outcome, once
from ramet_server.domain.ids import check_id
from tree_service.rules.ports import Store, UnitOfWork
from tree_service.rules.ranks import close_ranks, open_ranks, reorder
from tree_service.rules.showing import (
    check_expected,
    check_version,
    lock_space,
    remember,
    settled,
    show_again,
    show_stored,
    visible,
)
from tree_service.rules.values import REPORTED, ChangeKind, Move, Moved, Node, Ref


class MoveRules:
    """Moves nodes; the forest stays one, without a cycle."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def move(self, call: Call, mutation: Mutation, move: Move) -> Moved:
        """Moves a node to a parent (or among the roots) and an index; siblings on both sides close ranks.

        Raises MoveMakesCycle where the new parent is the node or below it. Refs between what moves and its new
        ancestors are removed.
        """
        check_id(move.node_id, "node_id")
        if move.parent_id is not None:
            check_id(move.parent_id, "parent_id")
        check_expected(move.expected_version)
        if move.index is not None and move.index < 0:
            raise InvalidField("index must not be negative.", field="index")

        def work(unit: UnitOfWork) -> tuple[Moved, Outcome]:
            roots = lock_space(unit)
            node = visible(unit, move.node_id)
            parent = None if move.parent_id is None else visible(unit, move.parent_id, "parent_id")
            check_version(node, move.expected_version)
            if parent is not None and _is_below(unit, parent, node):
                raise MoveMakesCycle("The new parent is the node itself or below it.", field="parent_id")
            node = settled(unit, node)
            parent = None if parent is None else settled(unit, parent)
            removed = self._place(unit, node, parent, roots if parent is None else parent.child_count, move.index)
            shown = show_stored(unit, node.node_id)
            flat = [one for ref in removed for one in (ref.node_id, ref.target_id)]
            return Moved(shown, tuple(removed)), {**remember(shown), "removed_refs": flat}

        return once(self._store, call, mutation, work, _replay)

    def _place(self, unit: UnitOfWork, node: Node, parent: Node | None, family: int, wish: int | None) -> list[Ref]:
        """Puts the node at its new place, of ``family`` siblings so far; returns the first refs that this removed."""
        now = self._clock.now()
        parent_id = None if parent is None else parent.node_id
        unit.changes.tell(ChangeKind.MOVED, [node.node_id])
        stays = parent_id == node.parent_id
        end = family - 1 if stays else family
        index = end if wish is None else min(wish, end)
        moved = replace(
            node,
            parent_id=parent_id,
            index=index,
            depth=0 if parent is None else parent.depth + 1,
            version=node.version + 1,
            updated_at=now,
        )
        if stays:
            reorder(unit, node, index)
            unit.nodes.save(moved)
            return []
        close_ranks(unit, node)
        open_ranks(unit, parent_id, index)
        unit.nodes.save(moved)
        # From here on the node stands at its new place, and its lines lead from there.
        below = unit.lines.descendant_ids(node.node_id) if node.child_count else []
        if moved.depth != node.depth:
            unit.lines.shift_depths(below, moved.depth - node.depth)
        illegal = _illegal_refs(unit, node.node_id, below)
        unit.refs.remove(illegal)
        # The move itself is one change of the node, with or without refs of its own.
        others = sorted({ref.node_id for ref in illegal} - {node.node_id})
        unit.nodes.touch(others, now)
        unit.changes.tell(ChangeKind.UPDATED, others)
        return illegal[:REPORTED]


def _is_below(unit: UnitOfWork, node: Node, other: Node) -> bool:
    """Tells whether the node is the other one, or below it."""
    if node.node_id == other.node_id:
        return True
    if node.depth <= other.depth:
        return False
    return other.node_id in unit.lines.ancestor_ids(node.node_id, down_from=other.depth)


def _illegal_refs(unit: UnitOfWork, node_id: str, below: list[str]) -> list[Ref]:
    """Returns the refs between the ancestors of a node and the node with all below it, by id."""
    ancestors = unit.lines.ancestor_ids(node_id)
    family = {node_id, *below}
    touching = unit.refs.touching(ancestors)
    return sorted(
        (ref for ref in touching if ref.node_id in family or ref.target_id in family),
        key=lambda ref: (ref.node_id, ref.target_id),
    )


def _replay(unit: UnitOfWork, outcome: Outcome) -> Moved:
    flat = outcome["removed_refs"]
    ids = [str(one) for one in flat] if isinstance(flat, list | tuple) else []
    pairs = zip(ids[::2], ids[1::2], strict=True)
    return Moved(show_again(unit, outcome), tuple(Ref(node_id, target_id) for node_id, target_id in pairs))
