"""Sessions as an archive brings them.

A session arrives in three steps: its spans, then its records batch by batch, then its row, which makes it
visible. Until then a note in ``arriving_session`` holds its origin, so that an import that was stopped can
go on, and so that no two bring the same session at once: each batch locks the note. The spans come first
because a record that a span covers is never swept.

Records may be shared with sessions that came before. Those are still there when the spans are committed:
they are looked for under the locks of the sessions that brought them, after every sweep that could erase
them has ended.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.errors import SessionExists, WriteConflict
from ramet_server.domain.ids import new_origin
from ramet_server.domain.limits import Limits
from session_service.rules import spans
from session_service.rules.archiving.arrival_checks import check_arriving_record, check_arriving_session
from session_service.rules.archiving.leaving import Leaving, leaving
from session_service.rules.archiving.ports import ArchiveStore, ArchiveUnit
from session_service.rules.erasure import ErasureRules, release_in
from session_service.rules.spans import OPEN_END, Released, Span
from session_service.rules.values import Record

_COMPARED = 100
"""Records that are compared at once."""

_UNKNOWN_GROUPS = "?"
"""State of the last tool-call groups that only the history can tell."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to arrive of a session, under the names that its archive has for origins."""

    session_id: str
    own: str
    """The name of the session's own origin."""
    shown: Sequence[Span]
    """What it will show, without an open end; each ``origin`` is a name."""
    head_seq: int
    coming: Sequence[Span]
    """The part whose records the archive is about to bring; the rest came before."""
    known: Mapping[str, str]
    """Origins of names that came before."""
    holders: Collection[str]
    """The sessions that brought what came before."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A session that is on its way."""

    session_id: str
    origin: str
    origins: Mapping[str, str]
    """Of every name that it shows."""
    resumed: bool
    """Whether an earlier import began it, so that some of its records may be there."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A record and the origin that it lies under."""

    origin: str
    record: Record


class ArrivingSessions:
    """The rules of bringing sessions; every method but ``find`` and ``differing`` is a transaction."""

    def __init__(self, store: ArchiveStore, limits: Limits, clock: Clock, erasure: ErasureRules) -> None:
        self._store = store
        self._limits = limits
        self._clock = clock
        self._erasure = erasure

    def find(self, call: Call, session_id: str) -> Leaving | None:
        """Returns a session as it would leave; None where there is none."""

        def read(unit: ArchiveUnit) -> Leaving | None:
            session = unit.sessions.get(session_id)
            return None if session is None else leaving(unit, session)

        return self._store.read(call, read)

    def begin(self, call: Call, wish: Wish, *, resume: bool) -> Arrival:
        """Notes a session as arriving and stores its spans, or goes on with an earlier import where ``resume``.

        What an earlier import left of it is dropped otherwise, and where it does not fit. Raises SessionExists.
        """
        dropped: list[Released] = []

        def work(unit: ArchiveUnit) -> Arrival:
            now = self._clock.now()
            dropped.clear()
            if unit.sessions.lock(wish.session_id) is not None:
                raise SessionExists("The session has come meanwhile.")
            for holder in sorted(wish.holders):
                unit.sessions.share(holder)
            note = unit.archives.lock_arriving(wish.session_id)
            if note is not None:
                unit.archives.hear_of(wish.session_id, now)
                found = _fitting(unit.spans.of(note.origin), wish) if resume else None
                if found is not None and found[wish.own] == note.origin:
                    return Arrival(wish.session_id, note.origin, found, resumed=True)
                dropped.extend(_drop_in(unit, wish.session_id, note.origin, now))
            names = {wish.own, *(span.origin for span in wish.shown)}
            origins = {name: wish.known.get(name) or new_origin() for name in names}
            own = origins[wish.own]
            _check_shared(unit, wish, origins)
            _check_heads(unit, wish)
            unit.archives.add_arriving(wish.session_id, own, now)
            unit.spans.add(own, [span._replace(origin=origins[span.origin]) for span in _with_open_end(wish)])
            return Arrival(wish.session_id, own, origins, resumed=False)

        arrival = self._store.write(call, work)
        self._erasure.sweep_released(call, dropped)
        return arrival

    def bring(
        self, call: Call, arrival: Arrival, batch: Sequence[Placed], *, may_be_there: bool, dated: bool = True
    ) -> int | None:
        """Stores records of an arriving session; returns the place of the first that is there and differs.

        Those that are there and equal stay, whatever their created_at where they are not ``dated``.
        ``may_be_there`` is False where none can be.
        """

        def work(unit: ArchiveUnit) -> int | None:
            _lock(unit, arrival)
            there: Mapping[tuple[str, int], Record] = _stored_records(unit, batch) if may_be_there else {}
            for place, each in enumerate(batch):
                found = there.get((each.origin, each.record.seq))
                if found is not None and not _equal(found, each.record, dated):
                    return place
            missing: dict[str, list[Record]] = {}
            for each in batch:
                if (each.origin, each.record.seq) not in there:
                    missing.setdefault(each.origin, []).append(each.record)
            for origin, records in missing.items():
                unit.records.insert(origin, records)
            unit.archives.hear_of(arrival.session_id, self._clock.now())
            return None

        return self._store.write(call, work)

    def differing(self, call: Call, batch: Sequence[Placed], *, dated: bool = True) -> int | None:
        """Returns the place of the first record that is not there as it is given; None where all are."""

        def read(unit: ArchiveUnit) -> int | None:
            there = _stored_records(unit, batch)
            for place, each in enumerate(batch):
                found = there.get((each.origin, each.record.seq))
                if found is None or not _equal(found, each.record, dated):
                    return place
            return None

        return self._store.read(call, read)

    def same(self, call: Call, one: Span, other: Span) -> bool:
        """Tells whether two ranges of the same seqs hold equal records."""

        def read(unit: ArchiveUnit, first: int) -> bool:
            last = min(first + _COMPARED - 1, one.last_seq)
            ours, theirs = (
                unit.records.read([span._replace(first_seq=first, last_seq=last)], _COMPARED) for span in (one, other)
            )
            return ours == theirs

        starts = range(one.first_seq, one.last_seq + 1, _COMPARED)
        return all(self._store.read(call, partial(read, first=first)) for first in starts)

    def finish(self, call: Call, arrival: Arrival, arrived: Leaving) -> None:
        """Makes a session visible whose records have all been brought."""
        whole = arrived.session._replace(origin=arrival.origin, open_groups=_UNKNOWN_GROUPS)

        def work(unit: ArchiveUnit) -> None:
            _lock(unit, arrival)
            unit.sessions.insert(whole)
            unit.marks.add(arrival.origin, arrived.broken)
            for name, slot in arrived.slots.items():
                unit.archives.add_slot(whole.session_id, name, slot)
            unit.archives.remove_arriving(whole.session_id)
            unit.archives.unnote_deleted(whole.session_id)

        self._store.write(call, work)

    def drop_stale(self, call: Call, before: datetime, limit: int, space: str | None = None) -> int:
        """Drops what imports left half-way before a moment, in one or all spaces; returns of how many sessions."""

        def work(unit: ArchiveUnit, session_id: str) -> list[Released]:
            note = unit.archives.lock_arriving(session_id)
            if note is None or note.heard_at >= before:
                return []
            return _drop_in(unit, session_id, note.origin, self._clock.now())

        found = self._store.read(call, lambda unit: unit.archives.stale(before, limit, space))
        for each in found:
            within, drop = replace(call, space=each.space_id), partial(work, session_id=each.session_id)
            self._erasure.sweep_released(call, self._store.write(within, drop))
        return len(found)

    def check_session(self, arrived: Leaving) -> None:
        """Checks what can be checked of a session before any SQL; raises InvalidArgument."""
        check_arriving_session(arrived, self._limits)

    def check_record(self, record: Record) -> Record:
        """Returns a record with its size, if it may be stored; raises InvalidArgument."""
        return check_arriving_record(record, self._limits)


def _equal(one: Record, other: Record, dated: bool) -> bool:
    return one == other if dated else one == other._replace(created_at=one.created_at)


def _lock(unit: ArchiveUnit, arrival: Arrival) -> None:
    note = unit.archives.lock_arriving(arrival.session_id)
    if note is None or note.origin != arrival.origin:
        raise WriteConflict("Another import has taken this session over.")


def _with_open_end(wish: Wish) -> list[Span]:
    """Returns the spans as they are stored: that of the session's own records goes on."""
    if wish.shown and wish.shown[-1].origin == wish.own and wish.shown[-1].last_seq == wish.head_seq:
        return [*wish.shown[:-1], wish.shown[-1]._replace(last_seq=OPEN_END)]
    return [*wish.shown, Span(wish.own, wish.head_seq + 1)]


def _fitting(stored: Sequence[Span], wish: Wish) -> dict[str, str] | None:
    """Returns the origins of names if stored spans are those of the wish; None where they are not."""
    found = dict(wish.known)
    expected = _with_open_end(wish)
    if len(stored) != len(expected):
        return None
    for there, wanted in zip(stored, expected, strict=True):
        if (there.first_seq, there.last_seq) != (wanted.first_seq, wanted.last_seq):
            return None
        if found.setdefault(wanted.origin, there.origin) != there.origin:
            return None
    return found


def _check_shared(unit: ArchiveUnit, wish: Wish, origins: Mapping[str, str]) -> None:
    """Raises WriteConflict where records that came before are no longer shown by anybody."""
    shared = spans.dropped(wish.shown, wish.coming)
    if not shared:
        return
    placed = [span._replace(origin=origins[span.origin]) for span in shared]
    unit.archives.wait_for_sweeps({span.origin for span in placed})
    covers = unit.spans.covers(placed)
    if any(spans.uncovered(span, covers.get(span.origin, ())) for span in placed):
        raise WriteConflict("Records that came before were dropped meanwhile.")


def _check_heads(unit: ArchiveUnit, wish: Wish) -> None:
    """Raises SessionExists where records would come to stand where a session that is here will write its next ones."""
    foreign = {wish.known[span.origin]: span.last_seq for span in wish.coming if span.origin in wish.known}
    for origin, owner_id in unit.archives.owners(foreign).items():
        owner = unit.sessions.share(owner_id)
        if owner is not None and owner.origin == origin and owner.head_seq < foreign[origin]:
            raise SessionExists("it shows records that the session they are of has not written here")


def _drop_in(unit: ArchiveUnit, session_id: str, origin: str, now: datetime) -> list[Released]:
    """Takes back what came of a session."""
    # What it would have appended itself was not given yet.
    last = unit.archives.last_seq(origin)
    brought = [
        span._replace(last_seq=min(span.last_seq, last)) if span.origin == origin else span
        for span in unit.spans.of(origin)
    ]
    released = release_in(unit, origin, [span for span in brought if span.first_seq <= span.last_seq], now)
    unit.spans.delete(origin)
    unit.archives.remove_arriving(session_id)
    return released


def _stored_records(unit: ArchiveUnit, batch: Sequence[Placed]) -> Mapping[tuple[str, int], Record]:
    wanted: dict[str, list[int]] = {}
    for each in batch:
        wanted.setdefault(each.origin, []).append(each.record.seq)
    return {
        (origin, seq): record
        for origin, seqs in wanted.items()
        for seq, record in unit.archives.stored(origin, seqs).items()
    }
