"""One session of an archive, from its line to its last record."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ramet_server.archiving.coverage import Coverage
from ramet_server.archiving.errors import ArchiveError
from ramet_server.archiving.fields import session_name, session_of
from ramet_server.archiving.id_mapping import Ids
from ramet_server.archiving.lines import Counts
from ramet_server.domain.call import Call
from session_service.rules.archiving.arriving import Arrival, ArrivingSessions, Placed, Wish
from session_service.rules.archiving.leaving import Leaving
from session_service.rules.spans import Span, count, dropped
from session_service.rules.values import Record, Slot, SlotName

_FIELDS = ("label", "status", "turn_count", "metadata_json", "head_seq", "floor_seq", "version", "tags")
_TIMES = ("created_at", "updated_at", "last_active_at")

_BATCH = 500
_BATCH_BYTES = 4 * 1024 * 1024


@dataclass
class Provenance:
    """What earlier sessions of the archive brought, a few numbers per session."""

    coverage: Coverage = field(default_factory=Coverage)
    origins: dict[str, str] = field(default_factory=dict)
    """By name."""
    holders: dict[str, set[str]] = field(default_factory=dict)
    """By name: the sessions, as they are called here, that brought records of it."""
    largest: dict[str, int] = field(default_factory=dict)
    """By name: the size of its largest record, in bytes."""
    heads: dict[str, int] = field(default_factory=dict)
    """By name of a session: its head."""


@dataclass(frozen=True)
class Context:
    """What all sessions of one run share."""

    rules: ArrivingSessions
    call: Call
    ids: Ids
    resume: bool
    dated: bool
    provenance: Provenance


class OpenSession:
    """A session whose records are still coming."""

    def __init__(self, context: Context, number: int, archived: Leaving) -> None:
        """Looks for the session, and begins to bring it where it is not there. Raises ArchiveError."""
        self._context = context
        self._rules = context.rules
        self._line = number
        self._own = session_name(archived.session.session_id)
        context.rules.check_session(archived)
        self._check_names(archived.shown)
        new_id = context.ids.session(archived.session.session_id)
        self._wanted = replace(archived, session=archived.session._replace(session_id=new_id))
        self._coming = context.provenance.coverage.missing(archived.shown)
        self._expected = _each(self._coming)
        self._batch: list[tuple[int, Placed]] = []
        self._batch_bytes = 0
        self._arrival: Arrival | None = None
        there = context.rules.find(context.call, new_id)
        if there is None:
            self._origins = dict(self._begin().origins)
        else:
            self._origins = self._those_of(there)
        for name, origin in self._origins.items():
            context.provenance.origins.setdefault(name, origin)
        for span in self._coming:
            context.provenance.holders.setdefault(span.origin, set()).add(new_id)

    def record(self, number: int, name: str, record: Record) -> None:
        """Takes the next record."""
        expected = next(self._expected, None)
        if expected != (name, record.seq):
            wanted = "no record" if expected is None else f"record {expected[1]} of {expected[0]}"
            raise ArchiveError(number, f"{wanted} is expected here, not record {record.seq} of {name}")
        record = self._rules.check_record(record)
        largest = self._context.provenance.largest
        largest[name] = max(largest.get(name, 0), record.size_bytes)
        self._batch.append((number, Placed(self._origins[name], record)))
        self._batch_bytes += record.size_bytes
        if len(self._batch) >= _BATCH or self._batch_bytes >= _BATCH_BYTES:
            self._flush()

    def close(self, number: int) -> Counts:
        """Makes the session visible, now that its records are there; returns what is new.

        ``number`` is the line behind it.
        """
        missing = next(self._expected, None)
        if missing is not None:
            raise ArchiveError(number, f"record {missing[1]} of {missing[0]} is expected here")
        self._flush()
        provenance = self._context.provenance
        provenance.coverage.add(self._coming)
        provenance.heads[self._own] = self._wanted.session.head_seq
        if self._arrival is None:
            return Counts()
        largest = max((provenance.largest.get(span.origin, 0) for span in self._wanted.shown), default=0)
        session = self._wanted.session._replace(max_record_bytes=largest)
        self._rules.finish(self._context.call, self._arrival, replace(self._wanted, session=session))
        return Counts(sessions=1, records=count(self._coming))

    def _begin(self) -> Arrival:
        provenance = self._context.provenance
        names = {self._own, *(span.origin for span in self._wanted.shown)}
        session = self._wanted.session
        wish = Wish(
            session_id=session.session_id,
            own=self._own,
            shown=self._wanted.shown,
            head_seq=session.head_seq,
            coming=self._coming,
            known={name: provenance.origins[name] for name in names & provenance.origins.keys()},
            holders={holder for name in names for holder in provenance.holders.get(name, ())},
        )
        self._arrival = self._rules.begin(self._context.call, wish, resume=self._context.resume)
        return self._arrival

    def _those_of(self, there: Leaving) -> dict[str, str]:
        """Returns the origins of a session that is there; raises ArchiveError where it differs."""
        difference = _difference(there, self._wanted, self._context.dated)
        if difference is not None:
            raise ArchiveError(self._line, f"a session with this id is there, with another {difference}")
        origins = {self._own: there.session.origin}
        known = self._context.provenance.origins
        for ours, theirs in zip(self._wanted.shown, there.shown, strict=True):
            if origins.setdefault(ours.origin, theirs.origin) != theirs.origin:
                raise ArchiveError(self._line, "a session with this id is there, with other records")
            known_origin = known.get(ours.origin, theirs.origin)
            for before in dropped([ours], self._coming):
                # What came before lies elsewhere here, where the two sessions do not share it any more.
                one, other = before._replace(origin=known_origin), before._replace(origin=theirs.origin)
                if known_origin != theirs.origin and not self._rules.same(self._context.call, one, other):
                    raise ArchiveError(self._line, "a session with this id is there, with other records")
        return origins

    def _check_names(self, shown: Sequence[Span]) -> None:
        own = False
        for span in shown:
            own = own or span.origin == self._own
            if own != (span.origin == self._own):
                raise ArchiveError(self._line, "the session's own records stand last")
            if own or session_of(span.origin) is None:
                continue
            head = self._context.provenance.heads.get(span.origin)
            if head is None or head < span.last_seq:
                raise ArchiveError(self._line, f"it shows records of a {span.origin} that did not come before")

    def _flush(self) -> None:
        batch = [placed for _, placed in self._batch]
        numbers = [number for number, _ in self._batch]
        self._batch, self._batch_bytes = [], 0
        if not batch:
            return
        if self._arrival is None:
            place = self._rules.differing(self._context.call, batch, dated=self._context.dated)
        else:
            # Under a new origin there is nothing yet; under a shared one another import may have left something.
            fresh = not self._arrival.resumed and all(each.origin == self._arrival.origin for each in batch)
            place = self._rules.bring(
                self._context.call, self._arrival, batch, may_be_there=not fresh, dated=self._context.dated
            )
        if place is not None:
            seq = batch[place].record.seq
            raise ArchiveError(numbers[place], f"record {seq} is there, with another content")


def _each(pieces: Sequence[Span]) -> Iterator[tuple[str, int]]:
    for span in pieces:
        for seq in range(span.first_seq, span.last_seq + 1):
            yield span.origin, seq


def _told(slots: Mapping[SlotName, Slot], dated: bool) -> dict[SlotName, Slot]:
    return {name: slot if dated else replace(slot, updated_at=None) for name, slot in slots.items()}


def _difference(there: Leaving, wanted: Leaving, dated: bool) -> str | None:
    """Names what differs between a session that is there and one of the archive."""
    names = _FIELDS + (_TIMES if dated else ())
    different = [name for name in names if getattr(there.session, name) != getattr(wanted.session, name)]
    if different:
        return different[0]
    if _told(there.slots, dated) != _told(wanted.slots, dated):
        return "slot"
    if list(there.broken) != list(wanted.broken):
        return "set of broken groups"
    ours = [(span.first_seq, span.last_seq) for span in there.shown]
    return None if ours == [(span.first_seq, span.last_seq) for span in wanted.shown] else "history"
