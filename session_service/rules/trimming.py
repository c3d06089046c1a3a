"""Dropping records at either end of a history: trims and rewinds."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.idempotency import Mutation, Outcome, once
from ramet_server.domain.ids import check_id
from session_service.rules import requests, spans
from session_service.rules.erasure import ErasureRules, release_in
from session_service.rules.history import History
from session_service.rules.outcomes import number_in
from session_service.rules.ports import ContentUnit, Store, UnitOfWork
from session_service.rules.spans import Released, Span
from session_service.rules.tool_groups import Tracker
from session_service.rules.values import Session


@dataclass(frozen=True, slots=True)
class Trim:
    """What TrimRecords asks for."""

    session_id: str
    keep_last: int
    expected_head_seq: int | None = None


@dataclass(frozen=True, slots=True)
class Trimmed:
    """What a trim left."""

    kept_records: int
    floor_seq: int


@dataclass(frozen=True, slots=True)
class Truncate:
    """What TruncateRecords asks for."""

    session_id: str
    after_seq: int
    """The last seq to keep."""
    expected_head_seq: int | None = None


class TrimRules:
    """The rules of trims and rewinds."""

    def __init__(self, store: Store, clock: Clock, erasure: ErasureRules) -> None:
        self._store = store
        self._clock = clock
        self._erasure = erasure

    def trim(self, call: Call, mutation: Mutation, trim: Trim) -> Trimmed:
        """Drops the oldest records, but never a part of a tool-call group."""
        requests.check_mutation(mutation)
        check_trim(trim)
        released: list[Released] = []

        def work(unit: UnitOfWork) -> tuple[Trimmed, Outcome]:
            trimmed, released[:] = trim_in(unit, trim, self._clock.now())
            return trimmed, {"kept_records": trimmed.kept_records, "floor_seq": trimmed.floor_seq}

        def replay(_: UnitOfWork, outcome: Outcome) -> Trimmed:
            released.clear()
            return Trimmed(number_in(outcome, "kept_records"), number_in(outcome, "floor_seq"))

        trimmed = once(self._store, call, mutation, work, replay)
        self._erasure.sweep_released(call, released)
        return trimmed

    def truncate(self, call: Call, mutation: Mutation, truncate: Truncate) -> int:
        """Drops all records after a seq; returns the new head."""
        requests.check_mutation(mutation)
        check_truncate(truncate)
        released: list[Released] = []

        def work(unit: UnitOfWork) -> tuple[int, Outcome]:
            head_seq, released[:] = truncate_in(unit, truncate, self._clock.now())
            return head_seq, {"head_seq": head_seq}

        def replay(_: UnitOfWork, outcome: Outcome) -> int:
            released.clear()
            return number_in(outcome, "head_seq")

        head_seq = once(self._store, call, mutation, work, replay)
        self._erasure.sweep_released(call, released)
        return head_seq


def check_trim(trim: Trim) -> None:
    """Checks what can be checked before any SQL."""
    check_id(trim.session_id, "session_id")
    requests.check_not_negative(trim.keep_last, "keep_last")
    requests.check_not_negative(trim.expected_head_seq, "expected_head_seq")


def check_truncate(truncate: Truncate) -> None:
    """Checks what can be checked before any SQL."""
    check_id(truncate.session_id, "session_id")
    requests.check_not_negative(truncate.after_seq, "after_seq")
    requests.check_not_negative(truncate.expected_head_seq, "expected_head_seq")


def trim_in(unit: ContentUnit, trim: Trim, now: datetime) -> tuple[Trimmed, list[Released]]:
    """Trims within a unit; returns also what was released, to be swept after the commit."""
    session = requests.writable(unit.sessions.lock(trim.session_id))
    requests.check_head(trim.expected_head_seq, session)
    stored = unit.spans.of(session.origin)
    shown = spans.clip(stored, session.floor_seq + 1, session.head_seq)
    first = session.head_seq + 1
    if trim.keep_last:
        wanted = spans.seq_of_last(shown, trim.keep_last)
        first = session.floor_seq + 1 if wanted is None else _cut(unit, session, shown, wanted)
    if first == session.floor_seq + 1:
        return Trimmed(spans.count(shown), session.floor_seq), []
    floor_seq = first - 1
    kept = spans.clip(stored, first, spans.OPEN_END)
    unit.spans.replace(session.origin, stored, kept)
    released = release_in(unit, session.origin, spans.clip(shown, 0, floor_seq), now)
    unit.marks.remove(session.origin, 0, floor_seq)
    tracker = Tracker.decode(session.open_groups)
    if tracker is not None:
        tracker.forget_through(floor_seq)
    after = session._replace(
        floor_seq=floor_seq, open_groups=session.open_groups if tracker is None else tracker.encode()
    )
    unit.sessions.save(session, after)
    return Trimmed(spans.count(spans.clip(shown, first, spans.OPEN_END)), floor_seq), released


def _cut(unit: ContentUnit, session: Session, shown: Sequence[Span], seq: int) -> int:
    cut = History(unit.records, shown, session.max_record_bytes).clean_cut(seq)
    # The floor stays where it is while nothing is dropped.
    return cut if spans.seq_before(shown, cut) is not None else session.floor_seq + 1


def truncate_in(unit: ContentUnit, truncate: Truncate, now: datetime) -> tuple[int, list[Released]]:
    """Rewinds within a unit; returns also what was released, to be swept after the commit."""
    session = requests.writable(unit.sessions.lock(truncate.session_id))
    requests.check_head(truncate.expected_head_seq, session)
    if truncate.after_seq < session.floor_seq:
        raise requests.below_floor(session.floor_seq, "after_seq")
    if truncate.after_seq > session.head_seq:
        raise requests.above_head(session.head_seq, "after_seq")
    stored = unit.spans.of(session.origin)
    shown = spans.clip(stored, session.floor_seq + 1, session.head_seq)
    kept = spans.clip(shown, 0, truncate.after_seq)
    dropped = spans.clip(shown, truncate.after_seq + 1, spans.OPEN_END)
    # This seq stays empty, so that a writer who saw what is dropped meets another head.
    head_seq = session.head_seq + 1
    unit.spans.replace(session.origin, stored, [*kept, Span(session.origin, head_seq + 1)])
    released = release_in(unit, session.origin, dropped, now)
    unit.sessions.save(session, session._replace(head_seq=head_seq, open_groups=_reopened(unit, session, kept)))
    return head_seq, released


def _reopened(unit: ContentUnit, session: Session, kept: Sequence[Span]) -> str | None:
    """Makes the last block an open one again, with the marks that fit it; returns the state of its groups."""
    end = kept[-1].last_seq if kept else session.floor_seq
    block = History(unit.records, kept, session.max_record_bytes).block_before(end + 1)
    begin = block[0].seq if block else end + 1
    unit.marks.remove(session.origin, begin, spans.OPEN_END)
    tracker = Tracker()
    orphans = [seq for record in block for group in tracker.add(record) if group.orphan for seq in group.seqs]
    unit.marks.add(session.origin, orphans)
    return tracker.encode()
