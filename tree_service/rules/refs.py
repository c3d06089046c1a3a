"""Cross references: between nodes of which neither stands above the other."""

from dataclasses import replace

from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.errors import IllegalRef
from ramet_server.domain.idempotency import Mutation, Outcome, once
from ramet_server.domain.ids import check_id
from tree_service.rules.ports import Store, UnitOfWork
from tree_service.rules.showing import lock_space, remember, settled, show_again, show_stored, visible
from tree_service.rules.values import ChangeKind, Node, Ref, ShownNode


class RefRules:
    """Adds and removes references."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def add(self, call: Call, mutation: Mutation, ref: Ref) -> ShownNode:
        """Adds a reference; one that is there already changes nothing.

        Raises IllegalRef for one to itself, an ancestor or a descendant.
        """
        _check(ref)
        if ref.node_id == ref.target_id:
            raise IllegalRef("A node does not refer to itself.", field="target_id")

        def work(unit: UnitOfWork) -> tuple[ShownNode, Outcome]:
            lock_space(unit)
            node = settled(unit, visible(unit, ref.node_id))
            target = settled(unit, visible(unit, ref.target_id, "target_id"))
            if in_one_line(unit, node, target):
                raise IllegalRef("A node does not refer to an ancestor or a descendant.", field="target_id")
            if not unit.refs.has(ref):
                now = self._clock.now()
                unit.refs.add(ref, now)
                unit.nodes.save(replace(node, version=node.version + 1, updated_at=now))
                unit.changes.tell(ChangeKind.UPDATED, [node.node_id])
            shown = show_stored(unit, ref.node_id)
            return shown, remember(shown)

        return once(self._store, call, mutation, work, show_again)

    def remove(self, call: Call, mutation: Mutation, ref: Ref) -> ShownNode:
        """Removes a reference; one that is not there changes nothing, whatever its target is."""
        _check(ref)

        def work(unit: UnitOfWork) -> tuple[ShownNode, Outcome]:
            lock_space(unit)
            node = settled(unit, visible(unit, ref.node_id))
            if unit.refs.has(ref):
                unit.refs.remove([ref])
                unit.nodes.save(replace(node, version=node.version + 1, updated_at=self._clock.now()))
                unit.changes.tell(ChangeKind.UPDATED, [node.node_id])
            shown = show_stored(unit, ref.node_id)
            return shown, remember(shown)

        return once(self._store, call, mutation, work, show_again)


def _check(ref: Ref) -> None:
    check_id(ref.node_id, "node_id")
    check_id(ref.target_id, "target_id")


def in_one_line(unit: UnitOfWork, one: Node, other: Node) -> bool:
    """Tells whether one of two nodes stands above the other."""
    upper, lower = sorted((one, other), key=lambda node: node.depth)
    if upper.depth == lower.depth:
        return False
    return upper.node_id in unit.lines.ancestor_ids(lower.node_id, down_from=upper.depth)
