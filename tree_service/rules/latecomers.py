"""Nodes that were swept while they awaited their content, and whose content came after all.

A client may stand still between the two steps of a fork for longer than a node is kept waiting: its session
then comes when the node is gone. A swept node is therefore remembered for some days, and put back.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from tree_service.rules.ports import Store, UnitOfWork
from tree_service.rules.ranks import enlarge
from tree_service.rules.showing import settled
from tree_service.rules.values import ChangeKind, Waiting

_KEPT = timedelta(days=7)


class Latecomers(Protocol):
    """Swept nodes of all spaces; each method is a transaction of its own."""

    def come(self, call: Call, limit: int) -> Sequence[Waiting]:
        """Returns swept nodes whose sessions came, longest swept first."""
        ...

    def forget(self, call: Call, before: datetime, limit: int) -> int:
        """Forgets nodes that were swept before a moment; returns how many."""
        ...


class LatecomerRules:
    """Puts nodes back; every step may be repeated, by many servers at once."""

    def __init__(self, store: Store, latecomers: Latecomers, clock: Clock) -> None:
        self._store = store
        self._latecomers = latecomers
        self._clock = clock

    def some(self, call: Call, limit: int) -> tuple[int, bool]:
        """Puts some nodes back, in all spaces; returns how many, and whether there may be more."""
        found = self._latecomers.come(call, limit)
        back = sum(
            self._store.write(replace(call, space=each.space_id), partial(_put_back, each.node_id, self._clock.now()))
            for each in found
        )
        forgotten = self._latecomers.forget(call, self._clock.now() - _KEPT, limit)
        return back, max(len(found), forgotten) >= limit


def _put_back(node_id: str, now: datetime, unit: UnitOfWork) -> bool:
    """Puts a swept node back, last among its siblings, or among the roots where its parent is gone."""
    roots = unit.space.lock(make=True) or 0
    swept = unit.swept.find(node_id)
    if swept is None:
        return False
    back = unit.nodes.find_any(node_id) is None
    if back:
        parent = None if swept.parent_id is None else unit.nodes.find(swept.parent_id)
        if parent is not None:
            parent = settled(unit, parent)
        node = replace(
            swept,
            parent_id=None if parent is None else parent.node_id,
            depth=0 if parent is None else parent.depth + 1,
            index=roots if parent is None else parent.child_count,
            version=swept.version + 1,
            updated_at=now,
        )
        if not unit.swept.restore(node):
            # Its session is gone again.
            return False
        enlarge(unit, node.parent_id, 1)
        unit.changes.tell(ChangeKind.CREATED, [node_id])
    unit.swept.forget(node_id)
    return back
