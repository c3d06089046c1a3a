"""Sessions as an archive takes them: whole, and without what only this database means by them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ramet_server.domain.errors import Internal
from session_service.rules import spans
from session_service.rules.archiving.ports import ArchiveUnit, Place
from session_service.rules.spans import Span
from session_service.rules.values import Record, Session, Slot, SlotName

_RECORDS = 500
_BYTES = 8 * 1024 * 1024
"""Text of the records that are read at once."""


@dataclass(frozen=True, slots=True)
class Leaving:
    """A session with all that belongs to it but its records."""

    session: Session
    shown: Sequence[Span]
    """What it shows, in as few spans as it takes and without an open end."""
    broken: Sequence[int]
    """The marked records of tool-call groups that were never completed."""
    slots: Mapping[SlotName, Slot]
    """Those that were ever written."""


class LeavingSessions:
    """Reads the sessions of one space within one unit of work, so as of one moment."""

    def __init__(self, unit: ArchiveUnit) -> None:
        self._unit = unit

    def page(self, after: Place | None, limit: int) -> list[Place]:
        """Returns the next sessions in the order of their creation: a source before its forks, as clocks go."""
        return self._unit.archives.page(after, limit)

    def owners(self, origins: Sequence[str]) -> Mapping[str, str]:
        """Returns the ids of the sessions that origins belong to; those of deleted ones are missing."""
        return self._unit.archives.owners(origins)

    def find(self, session_id: str) -> Leaving | None:
        """Returns a session; None where there is none."""
        session = self._unit.sessions.get(session_id)
        return None if session is None else leaving(self._unit, session)

    def records(self, pieces: Sequence[Span], max_record_bytes: int) -> Iterator[tuple[str, Record]]:
        """Yields the records of ascending ranges with their origins, read a bounded number at a time.

        Raises Internal where one is missing: ``ramet-server verify`` tells more.
        """
        at_once = max(1, min(_RECORDS, _BYTES // max(1, max_record_bytes)))
        left = list(pieces)[::-1]
        while left:
            # As many ranges as one read may need; those behind them stay untouched.
            some: list[Span] = []
            while left and spans.count(some) < at_once:
                some.append(left.pop())
            part = spans.take(some, at_once)
            rest = spans.skip(some, at_once)
            left.extend(reversed(rest))
            found = self._unit.records.read(part, at_once)
            yield from _with_origins(part, found)


def leaving(unit: ArchiveUnit, session: Session) -> Leaving:
    """Reads what belongs to a session."""
    first, last = session.floor_seq + 1, session.head_seq
    slots = unit.slots.read(session.session_id, tuple(SlotName)) or {}
    return Leaving(
        session,
        spans.joined(spans.clip(unit.spans.of(session.origin), first, last)),
        unit.marks.of(session.origin, first, last),
        {name: slot for name, slot in sorted(slots.items()) if slot.version},
    )


def _with_origins(part: Sequence[Span], found: Sequence[Record]) -> Iterator[tuple[str, Record]]:
    at = 0
    for span in part:
        for seq in range(span.first_seq, span.last_seq + 1):
            if at >= len(found) or found[at].seq != seq:
                raise Internal(f"Record {seq} of a history is missing; `ramet-server verify` tells more.")
            yield span.origin, found[at]
            at += 1
