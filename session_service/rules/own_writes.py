"""What a transaction has written so far, laid over what is committed.

The rules of single steps run over such a unit as over any other, and nothing of it reaches the database
before the commit. It is good for one session, and only while the history below it stays as it was: who
uses it holds the session's row against what was seen before.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import TypeVar

from ramet_server.domain.errors import SessionExists
from session_service.rules import spans
from session_service.rules.appending import light
from session_service.rules.ports import ContentUnit
from session_service.rules.requests import found
from session_service.rules.spans import Released, Span
from session_service.rules.values import UNWRITTEN, LightRecord, Record, Role, Session, Slot, SlotName, View

T = TypeVar("T")


@dataclass(slots=True)
class OwnWrites:
    """What a transaction has written to one session."""

    session: Session | None = None
    """The row as written, with its tags; None where it is as committed."""
    history: list[Span] | None = None
    """All spans; None where they are as committed."""
    origin: str = ""
    """Under which the own records lie."""
    records: list[Record] = field(default_factory=list)
    """Appended ones, ascending; some may have been dropped again, as the spans tell."""
    slots: dict[SlotName, Slot] = field(default_factory=dict)
    """Written ones."""

    def copy(self) -> "OwnWrites":
        """Returns a copy whose changes leave this one alone."""
        history = None if self.history is None else list(self.history)
        return OwnWrites(self.session, history, self.origin, list(self.records), dict(self.slots))


class OwnUnit:
    """A unit over one session that sees its own writes; implements ``ports.ContentUnit``."""

    def __init__(self, committed: ContentUnit, row: Session | None, own: OwnWrites) -> None:
        """Takes the session's row as committed, with its tags; ``own`` takes what is written."""
        self.sessions = _Sessions(committed, row, own)
        self.records = _Records(committed, own)
        self.spans = _Spans(committed, own)
        self.marks = _Marks()
        self.slots = _Slots(committed, row, own)


class _Sessions:
    def __init__(self, committed: ContentUnit, row: Session | None, own: OwnWrites) -> None:
        self._committed = committed
        self._row = row
        self._own = own

    def get(self, session_id: str) -> Session | None:  # noqa: ARG002 - it is always the one session
        return self._own.session or self._row

    def view(
        self, session_id: str, after_seq: int, before_seq: int, *, descending: bool, limit: int | None
    ) -> tuple[View, list[Span]] | None:
        session = self.get(session_id)
        if session is None:
            return None
        view = View(session.origin, session.head_seq, session.floor_seq, session.max_record_bytes)
        if self._own.history is None:
            committed = self._committed.sessions.view(
                session_id, after_seq, before_seq, descending=descending, limit=limit
            )
            return view, [] if committed is None else committed[1]
        shown = [span for span in self._own.history if span.first_seq < before_seq and span.last_seq > after_seq]
        if limit is not None:
            shown = shown[-limit:] if descending else shown[:limit]
        return view, shown

    def lock(self, session_id: str) -> Session | None:
        return self.get(session_id)

    def tags(self, session_id: str) -> tuple[str, ...]:
        return found(self.get(session_id)).tags

    def insert(self, session: Session) -> None:
        if self.get(session.session_id) is not None:
            raise SessionExists("A session with this id exists.", field="session_id")
        self._own.session = session

    def save(self, before: Session, after: Session) -> None:  # noqa: ARG002 - the whole row is kept
        self._own.session = after


class _Records:
    """Own records come after all committed ones."""

    def __init__(self, committed: ContentUnit, own: OwnWrites) -> None:
        self._committed = committed.records
        self._own = own

    def insert(self, origin: str, records: Sequence[Record]) -> None:
        self._own.origin = origin
        self._own.records += records

    def read(
        self, spans: Sequence[Span], limit: int, *, descending: bool = False, roles: Collection[Role] = ()
    ) -> list[Record]:
        below, own = self._split(spans, roles, descending=descending)
        return _first(
            lambda wanted: self._committed.read(below, wanted, descending=descending, roles=roles),
            own,
            limit,
            own_first=descending,
        )

    def sizes(
        self, spans: Sequence[Span], limit: int, *, descending: bool = False, roles: Collection[Role] = ()
    ) -> list[tuple[int, int]]:
        below, own = self._split(spans, roles, descending=descending)
        return _first(
            lambda wanted: self._committed.sizes(below, wanted, descending=descending, roles=roles),
            ((record.seq, record.size_bytes) for record in own),
            limit,
            own_first=descending,
        )

    def light(self, spans: Sequence[Span], limit: int, *, descending: bool = False) -> list[LightRecord]:
        below, own = self._split(spans, (), descending=descending)
        return _first(
            lambda wanted: self._committed.light(below, wanted, descending=descending),
            map(light, own),
            limit,
            own_first=descending,
        )

    def skip(self, spans: Sequence[Span], offset: int, *, descending: bool, roles: Collection[Role]) -> int | None:
        below, own = self._split(spans, roles, descending=descending)
        if descending:
            mine = list(own)
            if offset < len(mine):
                return mine[offset].seq
            return self._committed.skip(below, offset - len(mine), descending=True, roles=roles)
        seq = self._committed.skip(below, offset, descending=False, roles=roles)
        if seq is not None:
            return seq
        after = next(islice(own, offset - self._committed.count(below, roles), None), None)
        return None if after is None else after.seq

    def count(self, spans: Sequence[Span], roles: Collection[Role]) -> int:
        below, own = self._split(spans, roles, descending=False)
        return self._committed.count(below, roles) + sum(1 for _ in own)

    def _split(
        self, shown: Sequence[Span], roles: Collection[Role], *, descending: bool
    ) -> tuple[list[Span], Iterable[Record]]:
        """Returns which committed records the spans show, and the own ones of these roles in order."""
        records = self._own.records
        if not records:
            return list(shown), ()
        first = records[0].seq
        below: list[Span] = []
        parts: list[list[Record]] = []
        for span in shown:
            if span.origin != self._own.origin or span.last_seq < first:
                below.append(span)
                continue
            below += spans.clip([span], 0, first - 1)
            start = bisect_left(records, span.first_seq, key=_seq)
            end = bisect_left(records, span.last_seq + 1, start, key=_seq)
            parts.append(records[start:end])
        own = (record for part in _ordered(parts, descending) for record in _ordered(part, descending))
        return below, (record for record in own if not roles or record.role in roles)


class _Spans:
    def __init__(self, committed: ContentUnit, own: OwnWrites) -> None:
        self._committed = committed.spans
        self._own = own

    def of(self, owner: str) -> list[Span]:
        return self._committed.of(owner) if self._own.history is None else list(self._own.history)

    def add(self, owner: str, spans: Iterable[Span]) -> None:
        self._own.history = [*self.of(owner), *spans]

    def replace(self, owner: str, before: Sequence[Span], after: Sequence[Span]) -> None:  # noqa: ARG002 - all are kept
        self._own.history = list(after)

    def release(self, released: Sequence[Released], now: datetime) -> None:
        """Does nothing: the commit releases, and no step reads what was released."""


class _Marks:
    """No step of a transaction reads marks; the commit sets them."""

    def add(self, owner: str, seqs: Iterable[int]) -> None:
        """Does nothing."""

    def remove(self, owner: str, first_seq: int, last_seq: int) -> None:
        """Does nothing."""


class _Slots:
    def __init__(self, committed: ContentUnit, row: Session | None, own: OwnWrites) -> None:
        self._committed = committed.slots
        self._row = row
        self._own = own

    def read(self, session_id: str, names: Collection[SlotName]) -> Mapping[SlotName, Slot] | None:
        if self._row is None:
            below: Mapping[SlotName, Slot] | None = None if self._own.session is None else {}
        else:
            below = self._committed.read(session_id, names)
        if below is None:
            return None
        return {name: self._own.slots.get(name) or below.get(name, UNWRITTEN) for name in names}

    def version(self, session_id: str, name: SlotName) -> int:
        own = self._own.slots.get(name)
        if own is not None:
            return own.version
        return 0 if self._row is None else self._committed.version(session_id, name)

    def write(self, session_id: str, name: SlotName, slot: Slot) -> None:  # noqa: ARG002 - it is always the one session
        self._own.slots[name] = slot

    def consume(self, session_id: str, name: SlotName, version: int, now: datetime) -> bool:
        slot = (self.read(session_id, (name,)) or {}).get(name, UNWRITTEN)
        if slot.version != version or slot.content is None:
            return False
        self._own.slots[name] = replace(slot, content=None, version=version + 1, updated_at=now)
        return True


def _seq(record: Record) -> int:
    return record.seq


def _ordered(items: Sequence[T], descending: bool) -> Iterable[T]:
    return reversed(items) if descending else items


def _first(committed: Callable[[int], list[T]], own: Iterable[T], limit: int, *, own_first: bool) -> list[T]:
    """Returns the first of committed and own rows together; committed ones are read as far as they are wanted."""
    if own_first:
        rows = list(islice(own, limit))
        return rows + committed(limit - len(rows)) if len(rows) < limit else rows
    rows = committed(limit)
    return rows + list(islice(own, limit - len(rows)))
