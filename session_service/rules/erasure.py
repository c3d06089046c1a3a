"""Erasing records: one by wish, and all that no session shows any more.

What a trim, a rewind or a delete drops is noted as released in the same transaction, and swept right
after the commit. The sweep deletes the records of a released range that no committed span covers.
That is safe: a span is only ever copied from a committed span, under the lock of its owner's row, and
whoever drops a span holds that lock too. So once no committed span covers a record, none can come.
Whatever is still covered is left: who drops the last cover releases it again.
"""

import logging
from collections.abc import Sequence
from datetime import datetime
from functools import partial

from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.errors import InvalidField, RametError, RecordNotFound
from ramet_server.domain.idempotency import Mutation, Outcome, once
from ramet_server.domain.ids import check_id
from session_service.rules import requests, spans
from session_service.rules.ports import ContentUnit, Store, UnitOfWork
from session_service.rules.spans import Released, Span
from session_service.rules.values import Record, Session, ToolCall

_log = logging.getLogger(__name__)

_BATCH = 1000
"""Records that one transaction deletes, so that none holds locks for long."""

_SPANS = 100
"""Ranges that one transaction looks at."""

_IN_CALL = 10_000
"""Records that the call which dropped them erases itself; what is more is left to the background sweep."""


class ErasureRules:
    """The rules of erasing."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def erase_record(self, call: Call, mutation: Mutation, session_id: str, seq: int) -> Record:
        """Empties one record for good, in every session that shows it; its place, role and call ids stay."""
        requests.check_mutation(mutation)
        check_id(session_id, "session_id")
        if seq < 1:
            raise InvalidField("seq must be 1 or more.", field="seq")

        def work(unit: UnitOfWork) -> tuple[Record, Outcome]:
            session = requests.writable(unit.sessions.lock(session_id))
            origin, record = _shown_record(unit, session, seq)
            if record.erased_at is None:
                record = _emptied(record, self._clock)
                unit.records.erase(origin, record)
            return record, {"seq": seq}

        def replay(unit: UnitOfWork, _: Outcome) -> Record:
            return _shown_record(unit, requests.found(unit.sessions.get(session_id)), seq)[1]

        return once(self._store, call, mutation, work, replay)

    def sweep_released(self, call: Call, released: Sequence[Released]) -> None:
        """Erases what a committed change released, as far as one call may; the background sweep does the rest."""
        try:
            self._sweep_all(call, released, _IN_CALL)
        except RametError as error:
            # The change itself stands, and so does the note of what is left to erase.
            _log.info("Erasing released records is left to the background sweep: %s", error.reason)

    def sweep(self, call: Call, limit: int) -> int:
        """Erases released records of all spaces, a batch per transaction; returns how many it looked at.

        It stops at about ``limit``, or when the call is over.
        """
        looked_at = 0
        while looked_at < limit:
            noted = self._store.read(call, lambda unit: unit.spans.released(_SPANS))
            if not noted:
                break
            looked_at += self._sweep_all(call, noted, limit - looked_at)
        return looked_at

    def _sweep_all(self, call: Call, released: Sequence[Released], limit: int) -> int:
        looked_at = 0
        left = list(released)
        while left and looked_at < limit:
            batch, left = left[:_SPANS], left[_SPANS:]
            rest, some = self._store.write(call, partial(_sweep_in, batch, self._clock))
            left[:0] = rest
            looked_at += some
        return looked_at


def release_in(unit: ContentUnit, owner: str, dropped: Sequence[Span], now: datetime) -> list[Released]:
    """Notes within a unit what a session drops; returns the notes, to be swept after the commit."""
    released = [Released(owner, span) for span in dropped]
    unit.spans.release(released, now)
    return released


def _sweep_in(batch: Sequence[Released], clock: Clock, unit: UnitOfWork) -> tuple[list[Released], int]:
    """Erases what no span covers of released ranges, up to a number of records; returns the rest, noted again.

    Returns also how many records it erased, counting each range as one more.
    """
    taken = unit.spans.take_released(batch)
    covers = unit.spans.covers([each.span for each in taken])
    gone: list[Span] = []
    rest: list[Released] = []
    room = _BATCH
    for place, each in enumerate(taken):
        gaps = spans.uncovered(each.span, covers.get(each.span.origin, ()))
        fitting = spans.take(gaps, room)
        gone += fitting
        room -= spans.count(fitting)
        if spans.count(fitting) < spans.count(gaps):
            first = fitting[-1].last_seq + 1 if fitting else each.span.first_seq
            rest = [Released(each.owner, Span(each.span.origin, first, each.span.last_seq)), *taken[place + 1 :]]
            break
    unit.records.delete(gone)
    unit.spans.release(rest, clock.now())
    return rest, spans.count(gone) + len(batch) - len(rest)


def _shown_record(unit: UnitOfWork, session: Session, seq: int) -> tuple[str, Record]:
    """Returns a record that a session shows, and its origin."""
    if seq <= session.floor_seq:
        raise requests.below_floor(session.floor_seq, "seq")
    shown = spans.clip(unit.spans.of(session.origin), seq, min(seq, session.head_seq))
    found = unit.records.read(shown, 1)
    if not found:
        raise RecordNotFound("The session shows no record with this seq.", field="seq")
    return shown[0].origin, found[0]


def _emptied(record: Record, clock: Clock) -> Record:
    calls = tuple(ToolCall(call.call_id, call.name, "") for call in record.tool_calls)
    emptied = record._replace(content="", parts_json=None, metadata_json=None, tool_calls=calls)
    return emptied._replace(size_bytes=emptied.text_bytes(), erased_at=clock.now())
