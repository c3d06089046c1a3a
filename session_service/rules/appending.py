"""The transactional part of an append, apart from opening the unit: other units may hold several."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from ramet_server.domain.errors import InvalidField
from ramet_server.domain.ids import check_id
from ramet_server.domain.limits import Limits
from session_service.rules import requests, spans
from session_service.rules.history import History
from session_service.rules.ports import ContentUnit
from session_service.rules.record_checks import check_records
from session_service.rules.tool_groups import Tracker
from session_service.rules.values import LightRecord, NewRecord, Record, Role, Session, SlotName

MAX_TURN_DELTA = 1000


class Append(NamedTuple):
    """What one append asks for; made for each, as what follows is, and so a named tuple as ``Record`` is."""

    session_id: str
    records: Sequence[NewRecord]
    expected_head_seq: int | None = None
    consume_insight_version: int | None = None
    turn_delta: int = 0


class Appended(NamedTuple):
    """What an append did."""

    seqs: tuple[int, ...]
    session: Session | None
    """None where a repeated request finds its session gone."""
    insight_consumed: bool = False
    insight_version: int = 0


def check_append(append: Append, limits: Limits) -> list[int]:
    """Checks what can be checked before any SQL; returns the size of each record, in bytes of UTF-8."""
    check_id(append.session_id, "session_id")
    if not append.records:
        raise InvalidField("records is required.", field="records")
    sizes = check_records(append.records, limits, "records")
    requests.check_not_negative(append.expected_head_seq, "expected_head_seq")
    requests.check_not_negative(append.consume_insight_version, "consume_insight_version")
    if not 0 <= append.turn_delta <= MAX_TURN_DELTA:
        raise InvalidField(f"turn_delta must be 0 to {MAX_TURN_DELTA}.", field="turn_delta")
    return sizes


def append_in(unit: ContentUnit, append: Append, sizes: Sequence[int], now: datetime) -> Appended:
    """Appends checked records, whose sizes are given, to a session that this unit locks."""
    before = requests.writable(unit.sessions.lock(append.session_id))
    requests.check_head(append.expected_head_seq, before)
    records = numbered(append.records, sizes, before.head_seq + 1, now)
    unit.records.insert(before.origin, records)
    after = before._replace(
        head_seq=records[-1].seq,
        turn_count=before.turn_count + append.turn_delta,
        max_record_bytes=max(before.max_record_bytes, *sizes),
        last_active_at=max(now, before.last_active_at),
        open_groups=_open_groups(unit, before, records),
    )
    unit.sessions.save(before, after)
    consumed, insight_version = _consume_insight(unit, append, now)
    tags = unit.sessions.tags(append.session_id)
    session = after if after.tags == tags else after._replace(tags=tags)
    return Appended(tuple(record.seq for record in records), session, consumed, insight_version)


def numbered(new: Sequence[NewRecord], sizes: Sequence[int], first_seq: int, now: datetime) -> list[Record]:
    """Returns checked records with the seqs and the time that they get."""
    # The fields that both kinds of record have are in one order.
    return [
        Record(seq, *each, size, now, None)
        for seq, (each, size) in enumerate(zip(new, sizes, strict=True), start=first_seq)
    ]


def _open_groups(unit: ContentUnit, before: Session, records: Sequence[Record]) -> str | None:
    if before.open_groups is None and not any(record.tool_calls or record.role is Role.TOOL for record in records):
        # Plain words open no group and end none. To follow them was two fifths of what this takes for 16 records.
        return None
    return follow(unit, before, map(light, records))


def light(record: Record) -> LightRecord:
    """Returns what tells groups apart of a record."""
    call_ids = tuple([call.call_id for call in record.tool_calls]) if record.tool_calls else ()
    return LightRecord(record.seq, record.role, call_ids, record.tool_call_id)


def follow(unit: ContentUnit, session: Session, records: Iterable[LightRecord]) -> str | None:
    """Marks what the new records of a session leave broken, and returns the state of its open groups after them."""
    tracker = Tracker.decode(session.open_groups)
    if tracker is None:
        tracker = _read_tracker(unit, session)
    broken = [seq for record in records for group in tracker.add(record) if not group.complete for seq in group.seqs]
    unit.marks.add(session.origin, broken)
    return tracker.encode()


def _read_tracker(unit: ContentUnit, session: Session) -> Tracker:
    """Finds the open groups in the history, where their state was too long to keep."""
    shown = spans.clip(unit.spans.of(session.origin), session.floor_seq + 1, session.head_seq)
    tracker = Tracker()
    for record in History(unit.records, shown, session.max_record_bytes).block_before(session.head_seq + 1):
        tracker.add(record)
    return tracker


def _consume_insight(unit: ContentUnit, append: Append, now: datetime) -> tuple[bool, int]:
    """Unsets the insight if it is the one that the turn read; tells so, and its version now."""
    version = append.consume_insight_version
    if version is None:
        return False, 0
    if unit.slots.consume(append.session_id, SlotName.INSIGHT, version, now):
        return True, version + 1
    return False, unit.slots.version(append.session_id, SlotName.INSIGHT)
