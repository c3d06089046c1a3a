"""Whether every seq that a span shows has its record, and every record a span that shows it.

Records are counted by origin and not by session, so that what a thousand forks share is counted once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ramet_server.domain.clock import Clock
from ramet_server.domain.findings import Finding, Flaw, Page, Place
from session_service.rules import spans
from session_service.rules.spans import OPEN_END, Span
from session_service.rules.verifying.ports import Audit, Owner, Range, Tally
from session_service.rules.verifying.standings import disorder_of

_AT_ONCE = 100

MISSING = "RECORD_MISSING"
LEAKED = "RECORD_LEAKED"

_RESTORE = "only a backup has it; a trim or a rewind takes the place out of the history"
_NOTHING = Tally()


@dataclass(frozen=True, slots=True)
class _Origin:
    """The records of one origin, and who shows them."""

    origin: str
    owner: Owner | None
    tally: Tally
    covers: Sequence[Range]

    @property
    def shown(self) -> list[Span]:
        """All that sessions show of it, in as few spans as it takes."""
        end = self.tally.last_seq if self.owner is None else self.owner.head_seq
        closed = (
            Span(self.origin, first, end if last == OPEN_END else last) for first, last in _merged(self.covers, end)
        )
        return [span for span in closed if span.first_seq <= span.last_seq]

    @property
    def plainly_whole(self) -> bool:
        """Whether count, first and last alone say that just the records are there that are shown."""
        shown, tally = self.shown, self.tally
        if len(shown) != 1:
            return not shown and not tally.count
        ends = shown[0].first_seq, shown[0].last_seq
        return tally.count == shown[0].length and (tally.first_seq, tally.last_seq) == ends

    @property
    def whose(self) -> str:
        """Tells people which session it is of."""
        return "" if self.owner is None else f"session {self.owner.session_id}: "


class OwnRecords:
    """Looks at the records under the origins of the sessions of one space."""

    def __init__(self, space: str, clock: Clock, *, with_foreign: bool) -> None:
        """``with_foreign``: also at what these sessions show under origins that are no session's any more."""
        self._space = space
        self._clock = clock
        self._with_foreign = with_foreign

    def page(self, unit: Audit, after: Place) -> Page[Audit]:
        """Looks at the next sessions."""
        found = unit.sessions(after[0] if after else "", _AT_ONCE)
        owners = {each.origin: Owner(self._space, each.session_id, each.head_seq) for each in found}
        wanted = set(owners)
        if self._with_foreign:
            foreign = {span.origin for each in found for span in each.spans} - wanted
            wanted |= foreign - unit.owners(foreign).keys()
        flaws = _look(unit, self._clock, sorted(wanted), owners)
        return Page(flaws, (found[-1].session_id,) if found else None)

    def again(self, unit: Audit, finding: Finding) -> Sequence[Flaw[Audit]]:
        """Looks at the records of one origin."""
        return _look_again(unit, self._clock, finding)


class LeftRecords:
    """Looks at the records under the origins that are no session's any more, in all spaces."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def page(self, unit: Audit, after: Place) -> Page[Audit]:
        """Looks at the next origins."""
        found = unit.origins(after[0] if after else "", _AT_ONCE)
        owners = unit.owners(found)
        left = [origin for origin in found if origin not in owners]
        return Page(_look(unit, self._clock, left, {}), (found[-1],) if len(found) == _AT_ONCE else None)

    def again(self, unit: Audit, finding: Finding) -> Sequence[Flaw[Audit]]:
        """Looks at the records of one origin."""
        return _look_again(unit, self._clock, finding)


def _look_again(unit: Audit, clock: Clock, finding: Finding) -> list[Flaw[Audit]]:
    origin = finding.id
    owner = unit.lock_origin(origin)
    return _look(unit, clock, [origin], {} if owner is None else {origin: owner})


def _look(unit: Audit, clock: Clock, origins: Sequence[str], owners: Mapping[str, Owner]) -> list[Flaw[Audit]]:
    if not origins:
        return []
    tallies, covers = unit.tallies(origins), unit.covers(origins)
    all_of_them = (
        _Origin(each, owners.get(each), tallies.get(each, _NOTHING), covers.get(each, ())) for each in origins
    )
    unclear = [one for one in all_of_them if not one.plainly_whole]
    released = unit.released([one.origin for one in unclear]) if unclear else {}
    flaws: list[Flaw[Audit]] = []
    for one in unclear:
        flaws += _missing(unit, one)
        flaws += _leaked(unit, clock, one, released.get(one.origin, ()))
    return flaws


def _missing(unit: Audit, one: _Origin) -> list[Flaw[Audit]]:
    lacking, first = 0, 0
    for span in one.shown:
        seqs = span.first_seq, span.last_seq
        there = unit.count(one.origin, seqs)
        if there < span.length:
            lacking += span.length - there
            first = first or _first_missing(unit, one.origin, seqs)
    if not lacking:
        return []
    shower = one.owner or unit.showing(one.origin, first)
    whose = "" if shower is None else f"session {shower.session_id}: "
    told = f"{whose}{lacking} records that it shows are not there, the first has seq {first}"
    space = "" if shower is None else shower.space_id
    return [Flaw(Finding(MISSING, space, one.origin, told, "all of them"), None, _RESTORE)]


def _first_missing(unit: Audit, origin: str, seqs: Range) -> int:
    low, high = seqs
    while low < high:
        middle = (low + high) // 2
        if unit.count(origin, (low, middle)) < middle - low + 1:
            high = middle
        else:
            low = middle + 1
    return low


def _leaked(unit: Audit, clock: Clock, one: _Origin, noted: Sequence[Range]) -> list[Flaw[Audit]]:
    # What lies above the head of a session is told of the session: its head is wrong.
    last = one.tally.last_seq if one.owner is None else min(one.tally.last_seq, one.owner.head_seq)
    if not one.tally.count or last < one.tally.first_seq:
        return []
    whole = Span(one.origin, one.tally.first_seq, last)
    known = [*noted, *((span.first_seq, span.last_seq) for span in one.shown)]
    gaps = spans.uncovered(whole, known)
    # Counted last: what the sweep took while this looked is gone by now.
    counts = [(gap, unit.count(one.origin, (gap.first_seq, gap.last_seq))) for gap in gaps]
    leaked = [(gap, count) for gap, count in counts if count]
    if not leaked:
        return []
    total = sum(count for _, count in leaked)
    told = f"{one.whose}{total} records from seq {leaked[0][0].first_seq} on that nobody shows"
    space = "" if one.owner is None else one.owner.space_id
    finding = Finding(LEAKED, space, one.origin, told, "none, or a note for the sweep")
    if one.owner is not None and not _in_order(unit, one.origin):
        return [Flaw(finding, None, "the spans of its own session must be mended first")]
    return [Flaw(finding, partial(_release, clock, [gap for gap, _ in leaked]))]


def _in_order(unit: Audit, owner: str) -> bool:
    own = unit.spans_of(owner)
    return bool(own) and own[-1] == Span(owner, own[-1].first_seq) and not disorder_of(own)


def _release(clock: Clock, gaps: Sequence[Span], unit: Audit) -> None:
    unit.release(gaps, clock.now())


def _merged(ranges: Iterable[Range], end: int) -> list[Range]:
    """Returns the same seqs in as few ranges as it takes; those without an end go to ``end``."""
    merged: list[Range] = []
    for first, last in sorted((first, min(last, end) if last == OPEN_END else last) for first, last in ranges):
        if first > last:
            continue
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return merged
