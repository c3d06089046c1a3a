"""What is new in a forest behind a position.

Positions are given under the lock of the space, which every change of its forest holds until it is committed. So
they ascend in the order of commits, and whoever reads on behind a position misses nothing.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from ramet_server.domain.call import Call
from ramet_server.domain.errors import Aborted, AboveHead, BelowTrimFloor, Exhausted, InvalidField, Unavailable
from tree_service.rules.ports import Backlog, Store, UnitOfWork
from tree_service.rules.showing import settle_arrived
from tree_service.rules.values import Extent, TreeChange

_CHANGES = 1000
_ARRIVED = 500
_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class News:
    """What became of a forest behind a position."""

    changes: Sequence[TreeChange]
    position: int
    """The watcher's next one."""
    extent: Extent
    """As it was read."""
    more: bool


class WatchRules:
    """Reads on, page by page."""

    def __init__(self, store: Store, backlog: Backlog) -> None:
        self._store = store
        self._backlog = backlog

    def begin(self, call: Call, after_position: int | None) -> int:
        """Returns the position to watch from; without ``after_position`` that of the forest now."""
        if after_position is not None and after_position < 0:
            raise InvalidField("after_position must not be negative.", field="after_position")
        # A reader sees these nodes, so they belong to what is told up to now.
        self._settle(call, [call.space])
        extent = self._store.read(call, lambda unit: unit.changes.extent())
        if after_position is None:
            return extent.position
        _check(after_position, extent)
        return after_position

    def news(self, call: Call, position: int) -> News:
        """Returns what comes behind a position; raises BelowTrimFloor where that is forgotten."""

        def read(unit: UnitOfWork) -> News:
            extent = unit.changes.extent()
            _check(position, extent)
            found = unit.changes.after(position, _CHANGES + 1)
            page = found[:_CHANGES]
            more = len(found) > len(page)
            return News(page, page[-1].position if more else extent.position, extent, more)

        return self._store.read(call, read)

    def extents(self, call: Call, space_ids: Collection[str]) -> Mapping[str, Extent]:
        """Returns where the forests of spaces stand; nodes whose content has come are settled before."""
        self._settle(call, space_ids)
        found = self._backlog.extents(call, space_ids)
        return {space_id: found.get(space_id, Extent()) for space_id in space_ids}

    def _settle(self, call: Call, space_ids: Collection[str]) -> None:
        arrived = self._backlog.arrived(call, space_ids, _ARRIVED)
        for space_id, group in groupby(arrived, lambda node: node.space_id):
            ids = [node.node_id for node in group]
            for start in range(0, len(ids), _AT_ONCE):
                some = ids[start : start + _AT_ONCE]
                try:
                    self._store.write(replace(call, space=space_id), lambda unit, some=some: settle_arrived(unit, some))  # type: ignore[misc]  # bound now
                except (Unavailable, Aborted, Exhausted):
                    # The next look, or another server's, finds them again.
                    return


def _check(position: int, extent: Extent) -> None:
    if position < extent.floor:
        raise BelowTrimFloor(
            "The changes behind after_position are no longer kept.",
            field="after_position",
            details={"floor_position": str(extent.floor)},
        )
    if position > extent.position:
        raise AboveHead(
            "after_position lies after the last change.",
            field="after_position",
            details={"head_position": str(extent.position)},
        )
