"""Filling a page with records: as many as it may hold by count and bytes, and one at least."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from session_service.rules import spans
from session_service.rules.ports import RecordRows
from session_service.rules.spans import Span
from session_service.rules.values import Record, Role, View

_DIRECT_BYTES = 8 * 1024 * 1024
"""Pages that cannot be larger are read in one query; before larger ones the sizes are read first."""


@dataclass(frozen=True, slots=True)
class Room:
    """What a page may hold."""

    records: int
    text_bytes: int
    """A single larger record still makes a page."""

    def fitting(self, sizes: Sequence[int]) -> int:
        """Returns how many of records of these sizes go on the page: at least one, where there is one."""
        left = self.text_bytes
        for place, size in enumerate(sizes[: self.records]):
            left -= size
            if left < 0 and place:
                return place
        return min(len(sizes), self.records)


@dataclass(frozen=True, slots=True)
class Filled:
    """A page, and whether there is more behind it."""

    records: Sequence[Record]
    more: bool


def fill(
    records: RecordRows,
    view: View,
    shown: Sequence[Span],
    room: Room,
    *,
    descending: bool = False,
    roles: Collection[Role] = (),
) -> Filled | None:
    """Returns the first page of what the spans show; None where records vanished while it was read."""
    # One more than a page tells whether it is the last.
    wanted = room.records + 1
    if not roles:
        shown = spans.take(shown, wanted, descending=descending)
    if wanted * view.max_record_bytes <= _DIRECT_BYTES:
        found = records.read(shown, wanted, descending=descending, roles=roles)
        fitting = room.fitting([record.size_bytes for record in found])
        complete, page = len(found), found[:fitting]
    else:
        sizes = records.sizes(shown, wanted, descending=descending, roles=roles)
        fitting = room.fitting([size for _, size in sizes])
        complete, page = len(sizes), []
        if fitting:
            ends = sizes[0][0], sizes[fitting - 1][0]
            part = spans.clip(shown, min(ends), max(ends))
            page = records.read(part, fitting, descending=descending, roles=roles)
    if (not roles and complete != min(wanted, spans.count(shown))) or len(page) != fitting:
        return None
    return Filled(page, complete > fitting)
