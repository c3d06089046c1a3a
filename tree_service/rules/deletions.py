"""Deleting a node, by a declared policy for its children."""

from datetime import datetime

from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.errors import NodeHasChildren
from ramet_server.domain.idempotency import Mutation, Outcome, once
from ramet_server.domain.ids import check_id
from tree_service.rules.ports import Store, UnitOfWork
from tree_service.rules.ranks import close_ranks, enlarge
from tree_service.rules.showing import check_expected, check_version, hidden, lock_space, settle, visible
from tree_service.rules.values import REPORTED, ChangeKind, Deleted, DeletePolicy, Deletion, Node


class DeletionRules:
    """Deletes nodes, and notes what is to become of their sessions.

    A hidden child counts as a child: REFUSE refuses, CASCADE deletes it, REPARENT keeps it. Of a hidden node no
    session is noted, since none is known: where one comes after all it has no node, which its maker finds out when
    it reads the node.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def delete(self, call: Call, mutation: Mutation, deletion: Deletion) -> Deleted:
        """Deletes a node; raises NodeHasChildren where its policy is to refuse and it has some."""
        check_id(deletion.node_id, "node_id")
        check_expected(deletion.expected_version)

        def work(unit: UnitOfWork) -> tuple[Deleted, Outcome]:
            lock_space(unit)
            node = (hidden if deletion.only_awaiting else visible)(unit, deletion.node_id)
            check_version(node, deletion.expected_version)
            deleted = self._delete(unit, node, deletion)
            return deleted, {"count": deleted.count, "node_ids": deleted.node_ids}

        return once(self._store, call, mutation, work, _replay)

    def _delete(self, unit: UnitOfWork, node: Node, deletion: Deletion) -> Deleted:
        going = [node.node_id]
        if deletion.policy is DeletePolicy.REPARENT and node.child_count:
            self._hand_over(unit, node)
        else:
            if node.child_count:
                if deletion.policy is not DeletePolicy.CASCADE:
                    raise NodeHasChildren("The node has children, perhaps some that still await their content.")
                going += unit.lines.descendant_ids(node.node_id)
            close_ranks(unit, node)
        if deletion.delete_sessions:
            unit.removals.request(going, self._clock.now())
        erase_nodes(unit, going, self._clock.now())
        return Deleted(len(going), tuple(going[:REPORTED]))

    def _hand_over(self, unit: UnitOfWork, node: Node) -> None:
        """Puts the children in the place of their parent, in order."""
        seen = unit.nodes.child_ids(node.node_id, node.child_count)
        # They are told of from here on, so they must not hide again.
        settle(unit, [node_id for node_id, arrived in unit.nodes.waiting(seen).items() if arrived])
        unit.changes.tell(ChangeKind.MOVED, seen)
        # No ref becomes illegal: whoever stands above another afterwards did so before.
        unit.lines.shift_depths(unit.lines.descendant_ids(node.node_id), -1)
        unit.nodes.shift_siblings(node.parent_id, node.index + 1, None, node.child_count - 1)
        unit.nodes.adopt(node.node_id, node.parent_id, node.index, self._clock.now())
        enlarge(unit, node.parent_id, node.child_count - 1)


def erase_leaf(unit: UnitOfWork, node: Node, now: datetime) -> None:
    """Removes a node that has no children, under the lock of the space."""
    close_ranks(unit, node)
    erase_nodes(unit, [node.node_id], now)


def erase_nodes(unit: UnitOfWork, node_ids: list[str], now: datetime) -> None:
    """Removes nodes, parents first, with all refs from and to them; ranks and counts are the caller's."""
    refs = unit.refs.touching(node_ids)
    unit.refs.remove(refs)
    others = sorted({ref.node_id for ref in refs}.difference(node_ids))
    unit.nodes.touch(others, now)
    unit.changes.tell(ChangeKind.UPDATED, others)
    _tell_deleted(unit, node_ids)
    unit.nodes.delete(node_ids)


def _tell_deleted(unit: UnitOfWork, node_ids: list[str]) -> None:
    """Tells of nodes that go, those below first, as a reader can take them away."""
    waiting = unit.nodes.waiting(node_ids)
    # Whoever follows the changes alone hears of each node first that it came.
    unit.changes.tell(ChangeKind.CREATED, [node_id for node_id in node_ids if waiting.get(node_id)])
    unit.changes.tell(ChangeKind.DELETED, [node_id for node_id in reversed(node_ids) if waiting.get(node_id, True)])


def _replay(_: UnitOfWork, outcome: Outcome) -> Deleted:
    count, ids = outcome["count"], outcome["node_ids"]
    return Deleted(
        count if isinstance(count, int) else 0,
        tuple(str(one) for one in ids) if isinstance(ids, list | tuple) else (),
    )
