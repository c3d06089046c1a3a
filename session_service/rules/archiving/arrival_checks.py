"""What a session from an archive may be, checked before any SQL: an archive may have been written by hand."""

import re
from collections.abc import Sequence

from ramet_server.domain.errors import InvalidField
from ramet_server.domain.ids import check_id
from ramet_server.domain.limits import Limits
from ramet_server.domain.text import check_text
from session_service.rules.archiving.leaving import Leaving
from session_service.rules.metadata import Metadata, check_metadata
from session_service.rules.record_checks import check_records
from session_service.rules.spans import OPEN_END, Span
from session_service.rules.values import NewRecord, Record

_CLIENT_TIME = re.compile(r"[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?Z")


def check_arriving_session(arrived: Leaving, limits: Limits) -> None:
    """Raises InvalidArgument for a session that no server could have made."""
    session = arrived.session
    check_id(session.session_id, "id")
    check_metadata(Metadata(session.label, session.tags, session.metadata_json), limits)
    if session.metadata_json == "" or tuple(sorted(set(session.tags))) != session.tags:
        raise InvalidField("tags are sorted, each once, and an empty metadata_json is none.", field="tags")
    for value, field, least in (
        (session.turn_count, "turn_count", 0),
        (session.head_seq, "head_seq", 0),
        (session.floor_seq, "floor_seq", 0),
        (session.version, "version", 1),
    ):
        if not least <= value < OPEN_END:
            raise InvalidField(f"{field} is no such number.", field=field)
    for name, slot in arrived.slots.items():
        if slot.content is not None:
            check_text(slot.content, f"slots.{name}", limits.max_slot_bytes)
        if not 1 <= slot.version < OPEN_END:
            raise InvalidField(f"slots.{name} has no such version.", field=f"slots.{name}")
    _check_spans(arrived.shown, session.floor_seq, session.head_seq)
    _check_marks(arrived.broken, arrived.shown)


def check_arriving_record(record: Record, limits: Limits) -> Record:
    """Returns a record with its size, if it may be stored."""
    new = NewRecord(
        record.role, record.content, record.parts_json, record.tool_calls, record.tool_call_id, record.name,
        record.client_time, record.metadata_json,
    )  # fmt: skip
    if not 1 <= record.seq < OPEN_END:
        raise InvalidField("seq is no such number.", field="seq")
    if "" in (record.parts_json, record.tool_call_id, record.name, record.metadata_json):
        raise InvalidField("An empty text stands where none should.", field="name")
    sizes = check_records([new], limits, "record")
    if record.client_time is not None and not _CLIENT_TIME.fullmatch(record.client_time):
        raise InvalidField("client_time is no time in UTC.", field="client_time")
    return record._replace(size_bytes=sizes[0])


def _check_spans(shown: Sequence[Span], floor_seq: int, head_seq: int) -> None:
    at = floor_seq
    for span in shown:
        if not at < span.first_seq <= span.last_seq <= head_seq:
            raise InvalidField("spans ascend between floor_seq and head_seq.", field="spans")
        at = span.last_seq
    if not floor_seq <= head_seq:
        raise InvalidField("floor_seq is not above head_seq.", field="floor_seq")


def _check_marks(broken: Sequence[int], shown: Sequence[Span]) -> None:
    place, before = 0, 0
    for seq in broken:
        while place < len(shown) and shown[place].last_seq < seq:
            place += 1
        if seq <= before or place == len(shown) or seq < shown[place].first_seq:
            raise InvalidField("broken names records that the session shows, ascending.", field="broken")
        before = seq
