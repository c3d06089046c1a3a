"""What is new in a session behind a position.

A position is a seq: all up to it was told. It needs no memory of the server, since what a session shows of the seqs
up to a position only ever shrinks, from either end: a trim takes the oldest, a rewind the newest.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ramet_server.domain.call import Call
from ramet_server.domain.errors import SessionNotFound
from ramet_server.domain.ids import check_id
from session_service.rules import requests, spans
from session_service.rules.filling import Room, fill
from session_service.rules.ports import Store, UnitOfWork
from session_service.rules.values import Record, View

# A watcher whose client is slow holds one page, and there may be a thousand of them.
_ROOM = Room(records=256, text_bytes=256 * 1024)


@dataclass(frozen=True, slots=True)
class Position:
    """How far a watcher has come in one incarnation of a session."""

    session_id: str
    origin: str
    through_seq: int
    told_seq: int
    """No record above this seq was told, or all above it were taken back; 0 where none was told."""


@dataclass(frozen=True, slots=True)
class News:
    """What a session shows behind a position."""

    records: Sequence[Record]
    rewound_to_seq: int | None
    """None where it still shows all that was told, but for what a trim took."""
    position: Position
    """The watcher's next one."""
    stand: tuple[int, int]
    """Head and floor as it was read."""
    more: bool


class WatchRules:
    """Reads on, page by page."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def begin(self, call: Call, session_id: str, after_seq: int | None) -> Position:
        """Returns the position to watch from; without ``after_seq`` the session's head."""
        check_id(session_id, "session_id")
        requests.check_not_negative(after_seq, "after_seq")
        view = self._store.read(call, lambda unit: _view(unit, session_id))
        if after_seq is None:
            return Position(session_id, view.origin, view.head_seq, told_seq=0)
        if after_seq > view.head_seq:
            raise requests.above_head(view.head_seq, "after_seq")
        if after_seq < view.floor_seq:
            raise requests.below_floor(view.floor_seq, "after_seq")
        return Position(session_id, view.origin, after_seq, told_seq=after_seq)

    def news(self, call: Call, position: Position) -> News:
        """Returns what comes behind a position.

        Raises SessionNotFound where the session is gone, also where its id is used again, and BelowTrimFloor where a
        trim has overtaken the position.
        """
        found = self._store.read(call, lambda unit: _news(unit, position, one_state=False))
        if found is None:
            found = self._store.snapshot(call, lambda unit: _news(unit, position, one_state=True))
        if found is None:
            raise AssertionError("Within one state every span is full.")
        return found

    def stands(self, call: Call, origins: Collection[str]) -> Mapping[str, tuple[int, int]]:
        """Returns head and floor of sessions by their origins, without those that are gone."""
        return self._store.read(call, lambda unit: unit.sessions.stands(origins))


def _view(unit: UnitOfWork, session_id: str) -> View:
    found = unit.sessions.view(session_id, spans.OPEN_END, 0, descending=False, limit=1)
    if found is None:
        raise requests.not_found()
    return found[0]


def _news(unit: UnitOfWork, position: Position, *, one_state: bool) -> News | None:
    """Returns what comes behind the position; None where that takes queries of one state, or records vanished."""
    through, told = position.through_seq, position.told_seq
    # With the record at the position, to see whether it is still shown.
    found = unit.sessions.view(
        position.session_id, through - 1, spans.OPEN_END, descending=False, limit=_ROOM.records + 3
    )
    if found is None or found[0].origin != position.origin:
        raise SessionNotFound("The session was deleted.", field="session_id")
    view, shown = found
    if through < view.floor_seq:
        raise requests.below_floor(view.floor_seq, "after_seq")
    rewound_to = None
    if told > view.floor_seq and not (told == through and spans.shows(shown, told)):
        if not one_state:
            return None
        rewound_to = _rewound_to(unit, position, view)
    page = fill(unit.records, view, spans.clip(shown, through + 1, view.head_seq), _ROOM)
    if page is None:
        return None
    if page.records:
        told = page.records[-1].seq
    elif rewound_to is not None:
        told = rewound_to
    moved = replace(position, through_seq=told if page.more else view.head_seq, told_seq=told)
    return News(page.records, rewound_to, moved, (view.head_seq, view.floor_seq), page.more)


def _rewound_to(unit: UnitOfWork, position: Position, view: View) -> int | None:
    """Returns the last seq, of those that were told, that is still shown, or the floor; None where it is the last."""
    told = position.told_seq
    found = unit.sessions.view(position.session_id, view.floor_seq, told + 1, descending=True, limit=1)
    last = spans.seq_before(found[1], told + 1) if found else None
    return None if last == told else max(last or 0, view.floor_seq)
