"""What changed since the last look, told once, whichever server committed it.

Rows bear the time of the server that changed them, which lies before their commit. So each look goes back
by a window over what was seen already, and tells of each row only the changes that it did not tell before.
A change is missed only if its commit, or another server's clock, lags by more than the window.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from telemetry.rules.answer_ports import AnswersStore, AnswersUnit
from telemetry.rules.listing import ListingRules
from telemetry.rules.tail_queries import Change, ChangePlace, Kind
from telemetry.rules.values import Diagnosis, Step, ToolCall

WINDOW_S = 10.0
"""How far each look goes back, in seconds."""

_LIGHT_AT_ONCE = 5000
_LIGHT_OF_A_LOOK = 50_000
_ROWS_AT_ONCE = 200

Row = Diagnosis | Step | ToolCall


@dataclass(frozen=True, slots=True)
class Look:
    """What one look found."""

    changes: Sequence[Change]
    """Not told before, oldest first."""
    began: datetime
    complete: bool
    """False where there was more than one look takes."""

    def parts(self) -> Iterator[Sequence[Change]]:
        """Yields the changes, as many at a time as are read at once."""
        for start in range(0, len(self.changes), _ROWS_AT_ONCE):
            yield self.changes[start : start + _ROWS_AT_ONCE]


class Seen:
    """What was told of one space; belongs to one poller."""

    def __init__(self, since: datetime) -> None:
        """Takes the moment before which all counts as told, but for the window."""
        self._since = since
        self._told: dict[tuple[Kind, int], datetime] = {}

    @property
    def floor(self) -> datetime:
        """Where the next look begins."""
        return self._since - timedelta(seconds=WINDOW_S)

    def told(self, change: Change) -> bool:
        """Whether a change was told."""
        moment = self._told.get((change.kind, change.id))
        return moment is not None and moment >= change.updated_at

    def remember(self, changes: Sequence[Change]) -> None:
        """Marks changes as told."""
        self._told.update({(change.kind, change.id): change.updated_at for change in changes})

    def finish(self, look: Look) -> None:
        """Lets the next look begin where this one did, and forgets what lies before its window."""
        if look.complete:
            self._since = max(self._since, look.began)
            self._told = {key: moment for key, moment in self._told.items() if moment >= self.floor}


class TailRules:
    """Finds changed rows."""

    def __init__(self, store: AnswersStore, clock: Clock, listing: ListingRules) -> None:
        self._store = store
        self._clock = clock
        self._listing = listing

    def begin(self, call: Call) -> Seen:
        """Returns the state in which all that is committed counts as told."""
        seen = Seen(self._clock.now())
        complete = False
        while not complete:
            look = self.look(call, seen)
            seen.remember(look.changes)
            complete = look.complete
        return seen

    def look(self, call: Call, seen: Seen) -> Look:
        """Finds what changed and was not told; ``seen`` is left as it is."""
        began = self._clock.now()

        def read(unit: AnswersUnit) -> tuple[list[Change], bool]:
            fresh: list[Change] = []
            parts = [_add_fresh(unit, kind, seen, fresh) for kind in Kind]
            return fresh, all(parts)

        fresh, complete = self._store.read(call, read)
        order = {kind: place for place, kind in enumerate(Kind)}
        fresh.sort(key=lambda change: (change.updated_at, order[change.kind], change.id))
        return Look(fresh, began, complete)

    def rows(self, call: Call, changes: Sequence[Change]) -> Sequence[Row]:
        """Returns the rows of changes as they are now; those that are gone are left out."""
        rows = self._store.read(call, lambda unit: _read(unit, changes))
        return [self._listing.shown(row) if isinstance(row, Diagnosis) else row for row in rows]


def _add_fresh(unit: AnswersUnit, kind: Kind, seen: Seen, fresh: list[Change]) -> bool:
    """Adds what changed of a kind; returns whether that was all."""
    after: ChangePlace | None = None
    most = len(fresh) + _LIGHT_OF_A_LOOK
    while len(fresh) < most:
        found = unit.changes.since(kind, seen.floor, after, _LIGHT_AT_ONCE)
        fresh.extend(change for change in found if not seen.told(change))
        if len(found) < _LIGHT_AT_ONCE:
            return True
        after = ChangePlace(found[-1].updated_at, found[-1].id)
    return False


def _read(unit: AnswersUnit, changes: Sequence[Change]) -> Sequence[Row]:
    ids: dict[Kind, list[int]] = {kind: [change.id for change in changes if change.kind is kind] for kind in Kind}
    found: dict[tuple[Kind, int], Row] = {}
    found.update({(Kind.DIAGNOSIS, row.id): row for row in unit.diagnoses.of_ids(ids[Kind.DIAGNOSIS])})
    found.update({(Kind.STEP, row.id): row for row in unit.steps.of_ids(ids[Kind.STEP])})
    found.update({(Kind.TOOL, row.id): row for row in unit.tools.of_ids(ids[Kind.TOOL])})
    return [found[change.kind, change.id] for change in changes if (change.kind, change.id) in found]
