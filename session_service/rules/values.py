"""The values that rules, store and messages share."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from ramet_server.domain.text import utf8_size


class Status(StrEnum):
    """Whether a session takes writes."""

    ACTIVE = "ACTIVE"
    ARCHIVED = "ARCHIVED"


class Role(StrEnum):
    """Who speaks in a record."""

    SYSTEM = "SYSTEM"
    USER = "USER"
    ASSISTANT = "ASSISTANT"
    TOOL = "TOOL"


class SlotName(StrEnum):
    """A context slot, by the name that people know it by."""

    SYSTEM_PROMPT = "systemPrompt"
    INSIGHT = "insight"
    MEMORY = "memory"


class Session(NamedTuple):
    """Metadata of a session, with what the server keeps beside it; a named tuple as ``Record`` is."""

    session_id: str
    origin: str
    """Internal id of this incarnation; its own records lie under it."""
    label: str
    status: Status
    turn_count: int
    metadata_json: str | None
    head_seq: int
    floor_seq: int
    max_record_bytes: int
    """No record that the session shows is larger, in bytes of UTF-8."""
    open_groups: str | None
    """Tool-call groups that still lack answers at the end of its history; see ``tool_groups``."""
    version: int
    created_at: datetime
    updated_at: datetime
    last_active_at: datetime
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool."""

    call_id: str
    name: str
    arguments_json: str
    """Empty: none."""


class _Texts:
    """What new and kept records have in common: how large their text is."""

    __slots__ = ()

    content: str
    parts_json: str | None
    tool_calls: tuple[ToolCall, ...]
    tool_call_id: str | None
    name: str | None
    metadata_json: str | None

    def text_bytes(self) -> int:
        """Returns the size of all its text in bytes of UTF-8."""
        size = utf8_size(self.content)
        for text in (self.parts_json, self.tool_call_id, self.name, self.metadata_json):
            if text:
                size += utf8_size(text)
        for call in self.tool_calls:
            size += utf8_size(call.call_id) + utf8_size(call.name) + utf8_size(call.arguments_json)
        return size


class _New(NamedTuple):
    role: Role
    content: str = ""
    parts_json: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    client_time: str | None = None
    """The client's own time as RFC 3339 text, to the nanosecond."""
    metadata_json: str | None = None


class NewRecord(_New, _Texts):
    """A record as a caller hands it over; a named tuple as ``Record`` is."""

    __slots__ = ()


class _Kept(NamedTuple):
    seq: int
    role: Role
    content: str
    parts_json: str | None
    tool_calls: tuple[ToolCall, ...]
    tool_call_id: str | None
    name: str | None
    client_time: str | None
    metadata_json: str | None
    size_bytes: int
    created_at: datetime
    erased_at: datetime | None


class Record(_Kept, _Texts):
    """A record as it is kept.

    A named tuple, because a history makes thousands of them: a frozen dataclass takes 2.5 us, and this 0.5.
    """

    __slots__ = ()

    def characters(self) -> int:
        """Returns what a context budget counts: code points of content, parts and tool calls."""
        count = len(self.content) + len(self.parts_json or "")
        return count + sum(len(call.name) + len(call.arguments_json) for call in self.tool_calls)


class LightRecord(NamedTuple):
    """What tells tool-call groups apart, without the content; a named tuple as ``Record`` is."""

    seq: int
    role: Role
    call_ids: tuple[str, ...] = ()
    """The calls that it makes, in order."""
    tool_call_id: str | None = None
    """The call that it answers."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A context slot; one never written has version 0."""

    content: str | None = None
    """None: unset, which is not empty."""
    version: int = 0
    updated_at: datetime | None = None


UNWRITTEN = Slot()
"""A slot before its first write."""


@dataclass(frozen=True, slots=True)
class SessionSlots:
    """The slots of one session, those that were asked for."""

    session_id: str
    slots: Mapping[SlotName, Slot]


@dataclass(frozen=True, slots=True)
class View:
    """Where a session's history begins and ends: all that reading records needs of its row."""

    origin: str
    head_seq: int
    floor_seq: int
    max_record_bytes: int


@dataclass(frozen=True, slots=True)
class DeletedSession:
    """That a session was deleted, noted for those who tell of it."""

    space_id: str
    session_id: str
    deleted_at: datetime
