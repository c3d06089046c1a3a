"""Whether each node stands where its parent says, and counts its children right."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from ramet_server.domain.clock import Clock
from ramet_server.domain.findings import Finding, Flaw, Page, Place
from ramet_server.domain.limits import Limits
from tree_service.rules.values import ChangeKind
from tree_service.rules.verifying.ports import Audit, Family, Standing

_AT_ONCE = 500
_CHUNK = 500

PARENT = "NODE_PARENT"
CYCLE = "NODE_CYCLE"
DEPTH = "NODE_DEPTH"
CHILD_COUNT = "NODE_CHILD_COUNT"
CHILD_INDEXES = "NODE_CHILD_INDEXES"
AWAITS = "NODE_AWAITS"
WAITS_LONG = "NODE_WAITS_LONG"

GRACE = timedelta(hours=1)
"""How much later than the limits say the sweep may come."""

_NO_FAMILY = Family()


class NodeCheck:
    """Looks at the nodes of one space."""

    def __init__(self, space: str, limits: Limits, clock: Clock) -> None:
        self._space = space
        self._limits = limits
        self._clock = clock

    def page(self, unit: Audit, after: Place) -> Page[Audit]:
        """Looks at the next nodes."""
        found = unit.nodes(after[0] if after else "", _AT_ONCE)
        return Page(self._look(unit, found), (found[-1].node_id,) if len(found) == _AT_ONCE else None)

    def again(self, unit: Audit, finding: Finding) -> Sequence[Flaw[Audit]]:
        """Looks at one node, with the space locked."""
        unit.lock()
        return self._look(unit, list(unit.some([finding.id]).values()))

    def _look(self, unit: Audit, nodes: Sequence[Standing]) -> list[Flaw[Audit]]:
        parents = unit.some({node.parent_id for node in nodes if node.parent_id is not None})
        families = unit.families([node.node_id for node in nodes])
        referring = unit.with_refs([node.node_id for node in nodes if node.awaits_content])
        flaws: list[Flaw[Audit]] = []
        for node in nodes:
            parent = None if node.parent_id is None else parents.get(node.parent_id)
            flaws += self._place(unit, node, parent)
            flaws += self._children(node, families.get(node.node_id, _NO_FAMILY))
            leaned_on = bool(families.get(node.node_id)) or node.node_id in referring
            flaws += self._waiting(node, leaned_on=leaned_on)
        return flaws

    def _place(self, unit: Audit, node: Standing, parent: Standing | None) -> list[Flaw[Audit]]:
        if node.parent_id is not None and parent is None:
            finding = self._finding(PARENT, node, f"its parent {node.parent_id} is no node", "a parent that exists")
            return [Flaw(finding, None, "where it belongs cannot be known; MoveNode puts it there")]
        depth = 0 if parent is None else parent.depth + 1
        if node.depth == depth:
            return []
        # A line of right depths cannot come back to itself, so every cycle has a node of a wrong one.
        if node.node_id in unit.ancestor_ids(node.node_id):
            finding = self._finding(CYCLE, node, f"it stands below itself, by its parent {node.parent_id}", "no cycle")
            return [Flaw(finding, partial(_uproot, node))]
        finding = self._finding(DEPTH, node, f"depth {node.depth}", f"{depth}, as its parents count")
        return [Flaw(finding, partial(deepen, node.node_id))]

    def _children(self, node: Standing, family: Family) -> list[Flaw[Audit]]:
        flaws: list[Flaw[Audit]] = []
        if node.child_count != family.count:
            finding = self._finding(CHILD_COUNT, node, f"child_count {node.child_count}", f"{family.count}")
            flaws.append(Flaw(finding, lambda unit: unit.save(node.node_id, child_count=family.count)))
        if not family.ranked:
            told = f"indexes {family.first_index} to {family.last_index} of {family.count} children"
            finding = self._finding(CHILD_INDEXES, node, told, "from 0, each once")
            flaws.append(Flaw(finding, partial(rank, node.node_id)))
        return flaws

    def _waiting(self, node: Standing, *, leaned_on: bool) -> list[Flaw[Audit]]:
        if not node.awaits_content:
            return []
        if leaned_on:
            finding = self._finding(AWAITS, node, "it awaits content, with children or refs", "visible for good")
            return [Flaw(finding, partial(_settle, node))]
        if node.created_at >= self._long_ago():
            return []
        told = f"it awaits content since {node.created_at.isoformat()}"
        finding = self._finding(WAITS_LONG, node, told, f"swept after {self._limits.await_content_seconds} seconds")
        return [Flaw(finding, partial(_sweep, node))]

    def _long_ago(self) -> datetime:
        return self._clock.now() - timedelta(seconds=self._limits.await_content_seconds) - GRACE

    def _finding(self, code: str, node: Standing, found: str, expected: str) -> Finding:
        return Finding(code, self._space, node.node_id, found, expected)


def rank(parent_id: str | None, unit: Audit) -> None:
    """Numbers the children of a node, or the roots, anew: in the order of their indexes, then of their age."""
    moved = []
    for index, child in enumerate(unit.children([parent_id])):
        if child.index != index:
            unit.save(child.node_id, index=index)
            moved.append(child.node_id)
    unit.tell(ChangeKind.MOVED, moved)


def deepen(node_id: str, unit: Audit) -> None:
    """Counts the depth of a node and of all below it anew."""
    node = unit.some([node_id])[node_id]
    parent = None if node.parent_id is None else unit.some([node.parent_id]).get(node.parent_id)
    depth = 0 if parent is None else parent.depth + 1
    level = [node]
    met = {node_id}
    while level:
        unit.set_depths([each.node_id for each in level if each.depth != depth], depth)
        below: list[Standing] = []
        for start in range(0, len(level), _CHUNK):
            below += unit.children([each.node_id for each in level[start : start + _CHUNK]])
        # Not twice, whatever else is wrong.
        level = [each for each in below if each.node_id not in met]
        met.update(each.node_id for each in level)
        depth += 1


def _uproot(node: Standing, unit: Audit) -> None:
    """Makes a node that stands below itself the last root: all below it hangs on the forest again."""
    last = unit.roots().last_index
    unit.save(node.node_id, parent_id=None, index=last + 1)
    roots = unit.roots().count
    if unit.root_count() is not None:
        unit.set_root_count(roots)
    if node.parent_id is not None:
        unit.save(node.parent_id, child_count=unit.families([node.parent_id]).get(node.parent_id, _NO_FAMILY).count)
        rank(node.parent_id, unit)
    deepen(node.node_id, unit)
    unit.tell(ChangeKind.MOVED, [node.node_id])


def _settle(node: Standing, unit: Audit) -> None:
    """Makes a node visible for good."""
    unit.save(node.node_id, awaits_content=False)
    unit.tell(ChangeKind.CREATED, [node.node_id])


def _sweep(node: Standing, unit: Audit) -> None:
    """Does what the sweep does with a node that waited too long."""
    if unit.has_session(node.node_id):
        _settle(node, unit)
        return
    unit.delete(node.node_id)
    rank(node.parent_id, unit)
    if node.parent_id is None:
        unit.set_root_count(unit.roots().count)
    else:
        unit.save(node.parent_id, child_count=unit.families([node.parent_id]).get(node.parent_id, _NO_FAMILY).count)
