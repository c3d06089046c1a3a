"""What goes on in the background: nodes whose content never came, and sessions that go with their nodes."""

from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby

from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.limits import Limits
from tree_service.rules.ports import Backlog, Store, UnitOfWork
from tree_service.rules.ranks import close_ranks
from tree_service.rules.showing import settle
from tree_service.rules.values import SessionRemoval, Swept, Waiting

_AT_ONCE = 100


class SweepRules:
    """Finishes what callers left; every step is short, and safe beside other servers that sweep."""

    def __init__(self, store: Store, backlog: Backlog, limits: Limits, clock: Clock) -> None:
        self._store = store
        self._backlog = backlog
        self._limits = limits
        self._clock = clock

    def waiting(self, call: Call, limit: int) -> Swept:
        """Settles or deletes nodes, in all spaces, that await their content for longer than the limits allow.

        At most ``limit`` nodes; the space of each is locked for a hundred at a time. The space of the call has no
        meaning here.
        """
        swept = Swept(0, 0)
        found = self._backlog.waiting(call, self._before(), limit)
        for space_id, group in groupby(found, lambda node: node.space_id):
            nodes = list(group)
            for start in range(0, len(nodes), _AT_ONCE):
                chunk = nodes[start : start + _AT_ONCE]
                swept += self._store.write(replace(call, space=space_id), partial(self._sweep, chunk))
        return swept

    def forget_changes(self, call: Call, limit: int) -> int:
        """Removes changes, in all spaces, that are older than the limits keep them; returns how many.

        About ``limit`` of them; the space of the call has no meaning here.
        """
        if not self._limits.tree_change_days:
            return 0
        before = self._clock.now() - timedelta(days=self._limits.tree_change_days)
        forgotten = 0
        for space_id, through in self._backlog.old_changes(call, before, limit).items():
            forgotten += self._store.write(replace(call, space=space_id), partial(_forget, through))
        return forgotten

    def pending_removals(self, call: Call, limit: int) -> list[SessionRemoval]:
        """Returns sessions of deleted nodes, in all spaces, that are still to be removed."""
        return self._backlog.removals(call, limit)

    def finish_removal(self, call: Call, removal: SessionRemoval) -> None:
        """Forgets a removal once its session is gone."""
        self._backlog.finish(call, removal)

    def _sweep(self, nodes: list[Waiting], unit: UnitOfWork) -> Swept:
        unit.space.lock()
        swept = Swept(0, 0)
        for waiting in nodes:
            # Read again under the lock: it may be settled, swept or made anew by now.
            node = unit.nodes.find_any(waiting.node_id)
            if node is None or not node.awaits_content or node.created_at >= self._before():
                continue
            if unit.nodes.find(node.node_id) is not None:
                settle(unit, [node.node_id])
                swept += Swept(1, 0)
            else:
                # It was never seen, so it has neither children nor refs.
                unit.swept.keep(node.node_id, self._clock.now())
                close_ranks(unit, node)
                unit.nodes.delete([node.node_id])
                swept += Swept(0, 1)
        return swept

    def _before(self) -> datetime:
        return self._clock.now() - timedelta(seconds=self._limits.await_content_seconds)


def _forget(through: int, unit: UnitOfWork) -> int:
    unit.space.lock()
    return unit.changes.forget(through)
