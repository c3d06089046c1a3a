"""The lines of an archive, between the values of the services and JSON.

Each line is one JSON object. The first tells the version; the others have a ``kind``. A field that has no
value is left out. What users handed over as JSON stays text within it, as it came.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from ramet_server import __version__
from ramet_server.archiving.fields import Reader, session_of
from ramet_server.domain.errors import InvalidField
from ramet_server.domain.moments import moment_text
from session_service.rules.archiving.leaving import Leaving
from session_service.rules.spans import Span, count
from session_service.rules.values import Record, Role, Session, Slot, SlotName, Status, ToolCall
from telemetry.rules.archiving.columns import Row
from tree_service.rules.archiving.leaving import LeavingNode
from tree_service.rules.archiving.ports import DatedRef
from tree_service.rules.values import Config, Node

VERSION = 1
"""Of the format; a reader refuses a greater one."""

Line = Mapping[str, Any]

_COUNTED = {"session": "sessions", "record": "records", "node": "nodes", "refs": "refs", "diagnosis": "diagnoses"}
_TOLD_EVERY = 100


@dataclass(frozen=True)
class Counts:
    """What an archive holds, or a run of it did."""

    lines: int = 0
    sessions: int = 0
    records: int = 0
    nodes: int = 0
    refs: int = 0
    diagnoses: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        """Adds each count."""
        return Counts(**{name: value + getattr(other, name) for name, value in vars(self).items()})


class Tally:
    """Counts lines one by one, which happens so often that it must cost little."""

    def __init__(self, tell: Callable[[Counts], None]) -> None:
        self._tell = tell
        self._numbers = dict.fromkeys(vars(Counts()), 0)

    def count(self, line: Line) -> None:
        """Counts a line, and tells from time to time how many there were."""
        kind = line["kind"]
        self._numbers["lines"] += 1
        name = _COUNTED.get(kind)
        if name is not None:
            self._numbers[name] += len(line["to"]) if kind == "refs" else 1
        if self._numbers["lines"] % _TOLD_EVERY == 0:
            self._tell(self.counts)

    def end(self) -> Counts:
        """Tells and returns how many there were."""
        self._tell(self.counts)
        return self.counts

    @property
    def counts(self) -> Counts:
        """How many there were so far."""
        return Counts(**self._numbers)


def encode(line: Line) -> bytes:
    """Returns a line as it stands in the file."""
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def header_line(scope: str, scope_id: str | None, space: str, *, redacted: bool) -> Line:
    """Returns the first line."""
    told = {"ramet_archive": VERSION, "server": __version__, "scope": scope, "id": scope_id, "space": space}
    return _without_none({**told, "redacted": redacted})


def end_line(counts: Counts) -> Line:
    """Returns the last line, by which a reader knows that nothing is missing."""
    return {"kind": "end", **vars(counts)}


def session_line(leaving: Leaving) -> Line:
    """Returns the line of a session; the spans' origins are names."""
    session = leaving.session
    return _without_none(
        {
            "kind": "session",
            "id": session.session_id,
            "label": session.label,
            "status": str(session.status),
            "turn_count": session.turn_count,
            "tags": list(session.tags),
            "metadata_json": session.metadata_json,
            "head_seq": session.head_seq,
            "floor_seq": session.floor_seq,
            "version": session.version,
            "created_at": moment_text(session.created_at),
            "updated_at": moment_text(session.updated_at),
            "last_active_at": moment_text(session.last_active_at),
            "slots": {name: _slot_told(slot) for name, slot in leaving.slots.items()},
            "broken": list(_runs(leaving.broken)),
            "spans": [
                {**_name_told(each.origin), "first": each.first_seq, "last": each.last_seq} for each in leaving.shown
            ],
        }
    )


def record_line(name: str, record: Record) -> Line:
    """Returns the line of a record under the name of its origin."""
    return _without_none(
        {
            "kind": "record",
            **_name_told(name),
            "seq": record.seq,
            "role": str(record.role),
            "content": record.content,
            "parts_json": record.parts_json,
            "tool_calls": [
                {"id": call.call_id, "name": call.name, "arguments_json": call.arguments_json}
                for call in record.tool_calls
            ]
            or None,
            "tool_call_id": record.tool_call_id,
            "name": record.name,
            "client_time": record.client_time,
            "metadata_json": record.metadata_json,
            "created_at": moment_text(record.created_at),
            "erased_at": None if record.erased_at is None else moment_text(record.erased_at),
        }
    )


def node_line(leaving: LeavingNode) -> Line:
    """Returns the line of a node; where it stands among its siblings is told by the order of lines."""
    node, config = leaving.node, leaving.config
    told = {
        "system_prompt": config.system_prompt,
        "skills": None if config.skills is None else list(config.skills),
        "version": config.version or None,
    }
    return _without_none(
        {
            "kind": "node",
            "id": node.node_id,
            "parent_id": node.parent_id,
            "cut": leaving.cut or None,
            "label": node.label,
            "source_session_id": node.source_session_id,
            "config": _without_none(told) or None,
            "version": node.version,
            "created_at": moment_text(node.created_at),
            "updated_at": moment_text(node.updated_at),
        }
    )


def refs_line(refs: Sequence[DatedRef]) -> Line:
    """Returns the line of all references of one node."""
    to = [{"id": ref.target_id, "created_at": moment_text(ref.created_at)} for ref in refs]
    return {"kind": "refs", "id": refs[0].node_id, "to": to}


def telemetry_line(kind: str, row: Row) -> Line:
    """Returns the line of a row of telemetry, by its columns."""
    told = {name: moment_text(value) if isinstance(value, datetime) else value for name, value in row.items()}
    return _without_none({"kind": kind, **told})


def read_session(line: Line) -> Leaving:
    """Reads the line of a session."""
    read = Reader(line)
    session = Session(
        session_id=read.text("id"),
        origin="",
        label=read.text("label"),
        status=read.word("status", Status),
        turn_count=read.number("turn_count"),
        metadata_json=read.text_or_none("metadata_json"),
        head_seq=read.number("head_seq"),
        floor_seq=read.number("floor_seq"),
        max_record_bytes=0,
        open_groups=None,
        version=read.number("version"),
        created_at=read.moment("created_at"),
        updated_at=read.moment("updated_at"),
        last_active_at=read.moment("last_active_at"),
        tags=tuple(read.texts("tags") or ()),
    )
    shown = [_read_span(each) for each in read.objects("spans")]
    slots, broken = read.take("slots", dict), read.take("broken", list)
    read.done()
    return Leaving(
        session,
        shown,
        _read_runs(broken, count(shown)),
        {SlotName(name): _read_slot(told) for name, told in slots.items() if _is_slot(name)},
    )


def read_record(line: Line) -> tuple[str, Record]:
    """Reads the line of a record; returns the name of its origin, too."""
    read = Reader(line)
    calls = []
    for told in read.objects("tool_calls") if "tool_calls" in line else ():
        of_call = Reader(told, kind=False)
        calls.append(ToolCall(of_call.text("id"), of_call.text("name"), of_call.text("arguments_json")))
        of_call.done()
    record = Record(
        seq=read.number("seq"),
        role=read.word("role", Role),
        content=read.text("content"),
        parts_json=read.text_or_none("parts_json"),
        tool_calls=tuple(calls),
        tool_call_id=read.text_or_none("tool_call_id"),
        name=read.text_or_none("name"),
        client_time=read.text_or_none("client_time"),
        metadata_json=read.text_or_none("metadata_json"),
        size_bytes=0,
        created_at=read.moment("created_at"),
        erased_at=read.moment_or_none("erased_at"),
    )
    name = read.name()
    read.done()
    return name, record


def read_node(line: Line) -> LeavingNode:
    """Reads the line of a node; its depth and index are not told."""
    read = Reader(line)
    node = Node(
        node_id=read.text("id"),
        parent_id=read.text_or_none("parent_id"),
        depth=0,
        index=0,
        child_count=0,
        label=read.text("label"),
        source_session_id=read.text_or_none("source_session_id"),
        awaits_content=False,
        version=read.number("version"),
        created_at=read.moment("created_at"),
        updated_at=read.moment("updated_at"),
    )
    cut = read.take("cut", bool) if "cut" in line else False
    config = Config(None, None)
    if "config" in line:
        told = Reader(read.take("config", dict), kind=False)
        skills = told.texts("skills")
        version = told.number("version") if told.has("version") else 0
        config = Config(told.text_or_none("system_prompt"), None if skills is None else tuple(skills), version)
        told.done()
    read.done()
    return LeavingNode(node, config, cut)


def read_refs(line: Line) -> list[DatedRef]:
    """Reads the line of a node's references."""
    read = Reader(line)
    node_id, refs = read.text("id"), []
    for told in read.objects("to"):
        ref = Reader(told, kind=False)
        refs.append(DatedRef(node_id, ref.text("id"), ref.moment("created_at")))
        ref.done()
    read.done()
    return refs


def _name_told(name: str) -> Line:
    session_id = session_of(name)
    return {"lost": int(name.partition(" ")[2])} if session_id is None else {"session": session_id}


def _read_span(told: Mapping[str, Any]) -> Span:
    read = Reader(told, kind=False)
    span = Span(read.name(), read.number("first"), read.number("last"))
    read.done()
    return span


def _slot_told(slot: Slot) -> Line:
    updated_at = None if slot.updated_at is None else moment_text(slot.updated_at)
    return _without_none({"content": slot.content, "version": slot.version, "updated_at": updated_at})


def _is_slot(name: str) -> bool:
    if name not in list(SlotName):
        raise InvalidField(f"slots.{name} is not known.", field="slots")
    return True


def _read_slot(told: object) -> Slot:
    if not isinstance(told, dict):
        raise InvalidField("A slot is an object.", field="slots")
    read = Reader(told, kind=False)
    slot = Slot(read.text_or_none("content"), read.number("version"), read.moment("updated_at"))
    read.done()
    return slot


def _runs(seqs: Sequence[int]) -> Iterator[list[int]]:
    """Yields ascending numbers as ranges."""
    starts = [0] + [place + 1 for place, (one, other) in enumerate(pairwise(seqs)) if other != one + 1]
    for start, end in zip(starts, [*starts[1:], len(seqs)], strict=True):
        if start < end:
            yield [seqs[start], seqs[end - 1]]


def _read_runs(told: list[object], most: int) -> list[int]:
    runs = []
    for each in told:
        if not isinstance(each, list) or [type(part) for part in each] != [int, int]:
            raise InvalidField("broken is a list of ranges.", field="broken")
        runs.append(range(each[0], each[1] + 1))
    # Before the numbers are made, because two of them may name as many as there are.
    if sum(map(len, runs)) > most:
        raise InvalidField("broken names more records than the session shows.", field="broken")
    return [seq for run in runs for seq in run]


def _without_none(told: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if value is not None}
