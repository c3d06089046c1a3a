"""Plain chat transcripts, as lines of an archive: each transcript one session, standing as a root.

Read are files of JSON or of JSON Lines: a list of messages; an object with ``messages``; one of either per line;
or one message per line, which together are one session. An object may also have ``id`` (or ``session_id``,
``conversation_id``), ``label`` (or ``title``, ``name``), ``tags`` and ``metadata``. Where it has no id, the session
gets one that follows from its content, so that the same transcript is the same session.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import Any

from ramet_server.archiving.errors import ArchiveError
from ramet_server.archiving.fields import session_name
from ramet_server.archiving.lines import Line, node_line, record_line, session_line
from ramet_server.archiving.messages import compact, records_of, taken
from ramet_server.domain.errors import RametError
from session_service.rules.appending import light
from session_service.rules.archiving.leaving import Leaving
from session_service.rules.spans import Span
from session_service.rules.tool_groups import Tracker
from session_service.rules.values import Record, Role, Session, Slot, SlotName, Status
from tree_service.rules.archiving.leaving import LeavingNode
from tree_service.rules.values import Config, Node


@dataclass(frozen=True)
class Transcript:
    """A conversation that no Ramet wrote."""

    id: str
    messages: list[object]
    label: str = ""
    tags: tuple[str, ...] = ()
    metadata_json: str | None = None
    status: Status = Status.ACTIVE
    turn_count: int | None = None
    """None: as many as there are messages of users."""
    slots: Mapping[SlotName, str] = field(default_factory=dict)
    created_at: datetime | None = None
    updated_at: datetime | None = None
    last_active_at: datetime | None = None


def read_transcripts(raw_lines: Iterable[bytes], now: datetime) -> Iterator[tuple[int, Line]]:
    """Yields the lines of an archive for a file of transcripts, numbered as those of the file; raises ArchiveError."""
    rest = iter(raw_lines)
    first = next(rest, b"")
    value = _value(first)
    if value is None:
        # One value over many lines.
        whole = b"".join(chain([first], rest))
        value = _value(whole)
        if value is None:
            raise ArchiveError(1, "is neither an archive nor JSON")
        yield from _lines_of(1, value, now)
        return
    if isinstance(value, dict) and "role" in value:
        messages = [_whole(number, raw) for number, raw in enumerate(chain([first], rest), start=1) if raw.strip()]
        yield from _lines_of(1, messages, now)
        return
    yield from _lines_of(1, value, now)
    for number, raw in enumerate(rest, start=2):
        if raw.strip():
            yield from _lines_of(number, _whole(number, raw), now)


def session_lines(transcript: Transcript, now: datetime) -> Iterator[Line]:
    """Yields the line of a session, and those of its records; raises InvalidField."""
    records = list(records_of(transcript.messages, now))
    created_at = transcript.created_at or now
    turns = sum(record.role is Role.USER for record in records)
    name = session_name(transcript.id)
    session = Session(
        session_id=transcript.id,
        origin="",
        label=transcript.label,
        status=transcript.status,
        turn_count=turns if transcript.turn_count is None else transcript.turn_count,
        metadata_json=transcript.metadata_json,
        head_seq=len(records),
        floor_seq=0,
        max_record_bytes=0,
        open_groups=None,
        version=1,
        created_at=created_at,
        updated_at=transcript.updated_at or created_at,
        last_active_at=transcript.last_active_at or transcript.updated_at or created_at,
        tags=tuple(sorted(set(transcript.tags))),
    )
    slots = {name: Slot(content, 1, now) for name, content in transcript.slots.items()}
    shown = [Span(name, 1, len(records))] if records else []
    yield session_line(Leaving(session, shown, _broken(records), slots))
    for record in records:
        yield record_line(name, record)


def root_line(transcript: Transcript, now: datetime) -> Line:
    """Returns the line of a session's node."""
    created_at = transcript.created_at or now
    node = Node(
        node_id=transcript.id,
        parent_id=None,
        depth=0,
        index=0,
        child_count=0,
        label=transcript.label,
        source_session_id=None,
        awaits_content=False,
        version=1,
        created_at=created_at,
        updated_at=transcript.updated_at or created_at,
    )
    return node_line(LeavingNode(node, Config(None, None)))


def _lines_of(number: int, value: object, now: datetime) -> Iterator[tuple[int, Line]]:
    try:
        transcript = _transcript(number, value)
        for line in session_lines(transcript, now):
            yield number, line
        yield number, root_line(transcript, now)
    except RametError as error:
        raise ArchiveError(number, error.message) from error


def _transcript(number: int, value: object) -> Transcript:
    if isinstance(value, list):
        return Transcript(_made_id(value), value)
    told = dict(value) if isinstance(value, dict) else {}
    messages = told.pop("messages", None)
    if not isinstance(messages, list):
        raise ArchiveError(number, "is neither a list of messages nor an object with messages")
    given_id = taken(told, "id", "session_id", "conversation_id")
    label = taken(told, "label", "title", "name")
    tags, metadata = told.pop("tags", None), told.pop("metadata", None)
    return Transcript(
        id=_made_id(messages) if given_id is None else str(given_id),
        messages=messages,
        label="" if label is None else str(label),
        tags=tuple(map(str, tags)) if isinstance(tags, list) else (),
        metadata_json=None if metadata is None else compact(metadata),
    )


def _made_id(messages: list[object]) -> str:
    content = json.dumps(messages, sort_keys=True, separators=(",", ":"))
    return f"transcript-{hashlib.sha256(content.encode()).hexdigest()[:32]}"


def _broken(records: list[Record]) -> list[int]:
    """Returns the records of tool-call groups that were never completed before the conversation went on."""
    tracker = Tracker()
    ended = [group for record in records for group in tracker.add(light(record))]
    return sorted(seq for group in ended if not group.complete for seq in group.seqs)


def _value(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _whole(number: int, raw: bytes) -> Any:
    value = _value(raw)
    if value is None:
        raise ArchiveError(number, "is no JSON")
    return value
