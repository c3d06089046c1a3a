"""Erasing records: one by wish, and all that no session shows any more.

What a trim, a rewind or a delete drops is noted as released in the same transaction, and swept right
after the commit. The sweep deletes the records of a released range that no committed span covers.
That is safe: a span is only ever copied from a committed span, under the lock of its owner's row, and
whoever drops a span holds that lock too. So once no committed span covers a record, none can come.
Whatever is still covered is left: who drops the last cover releases it again.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace

from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.errors import InvalidField, RametError, RecordNotFound
from ramet_server.domain.idempotency import Mutation, Outcome, once
from ramet_server.domain.ids import check_id
from session_service.rules import requests, spans
from session_service.rules.ports import Store, UnitOfWork
from session_service.rules.spans import Span
from session_service.rules.values import Record, Session, ToolCall

_log = logging.getLogger(__name__)

_BATCH = 1000
"""Records that one transaction deletes, so that none holds locks for long."""

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

    def sweep_released(self, call: Call, released: Sequence[Span]) -> None:
        """Erases what a committed change released, as far as one call may; the background sweep does the rest."""
        room = _IN_CALL
        try:
            for span in released:
                rest: Span | None = span
                while rest is not None:
                    if room <= 0:
                        return
                    rest, looked_at = self._sweep_some(call, rest)
                    room -= looked_at
        except RametError as error:
            # The change itself stands, and so does the note of what is left to erase.
            _log.info("Erasing released records is left to the background sweep: %s", error.reason)

    def sweep(self, call: Call, limit: int) -> int:
        """Erases released records of all spaces, a batch per transaction; returns how many it looked at.

        It stops at about ``limit``, or when the call is over.
        """
        looked_at = 0
        while looked_at < limit:
            noted = self._store.read(call, lambda unit: unit.spans.released(_BATCH))
            if not noted:
                break
            for span in noted:
                rest: Span | None = span
                while rest is not None and looked_at < limit:
                    rest, some = self._sweep_some(call, rest)
                    looked_at += max(1, some)
        return looked_at

    def _sweep_some(self, call: Call, span: Span) -> tuple[Span | None, int]:
        """Erases the first records of a released range; returns what is left of it, and how many it looked at."""
        return self._store.write(call, lambda unit: _sweep_in(unit, span, self._clock))


def _sweep_in(unit: UnitOfWork, span: Span, clock: Clock) -> tuple[Span | None, int]:
    # Taking the note first makes those wait who release the same range meanwhile: their notes come after.
    if not unit.spans.take_released(span):
        return None, 0
    looked_at = 0
    covers = unit.spans.covers(span.origin, span.first_seq, span.last_seq)
    for first, last in spans.uncovered(span.first_seq, span.last_seq, covers):
        until = min(last, first + _BATCH - looked_at - 1)
        unit.records.delete(span.origin, first, until)
        looked_at += until - first + 1
        if looked_at >= _BATCH and until < span.last_seq:
            rest = Span(span.origin, until + 1, span.last_seq)
            unit.spans.release([rest], clock.now())
            return rest, looked_at
    return None, looked_at


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
    emptied = replace(record, content="", parts_json=None, metadata_json=None, tool_calls=calls)
    return replace(emptied, size_bytes=emptied.text_bytes(), erased_at=clock.now())
