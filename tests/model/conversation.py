"""The model of SessionStorage: sessions as plain lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ramet.session.v1 import session_pb2 as pb
from tests.model.groups import clean_cut, groups, incomplete

Moment: TypeAlias = tuple[int, int]
"""Seconds and nanoseconds."""

PROMPT, INSIGHT, MEMORY = "system_prompt", "insight", "memory"
SLOTS = (PROMPT, INSIGHT, MEMORY)


@dataclass(eq=False)
class Rec:
    """A record. Sessions that share it hold the very same object."""

    seq: int
    message: pb.Record
    """As it was sent, and as it was blanked when it was erased."""
    erased: bool = False

    @property
    def call_ids(self) -> Sequence[str]:
        """Ids of the tool calls that it makes."""
        return [call.id for call in self.message.tool_calls]

    @property
    def answers(self) -> str:
        """Id of the tool call that it answers; empty where it answers none."""
        return self.message.tool_call_id

    @property
    def characters(self) -> int:
        """What it takes of a context's budget."""
        message = self.message
        calls = sum(len(call.name) + len(call.arguments_json) for call in message.tool_calls)
        return len(message.content) + len(message.parts_json) + calls

    def erase(self) -> None:
        """Blanks content and JSON; place, role, names, ids of calls and times stay."""
        self.erased = True
        for name in ("content", "parts_json", "metadata_json"):
            self.message.ClearField(name)
        for call in self.message.tool_calls:
            call.ClearField("arguments_json")


@dataclass
class Slot:
    """A context slot; no content: unset."""

    content: str | None = None
    version: int = 0


@dataclass
class Session:
    """One session. Records that it does not show any more are simply not in its list."""

    id: str
    label: str = ""
    tags: list[str] = field(default_factory=list)
    metadata_json: str = ""
    archived: bool = False
    turn_count: int = 0
    version: int = 1
    head: int = 0
    floor: int = 0
    records: list[Rec] = field(default_factory=list)
    slots: dict[str, Slot] = field(default_factory=lambda: {name: Slot() for name in SLOTS})
    created_at: Moment = (0, 0)
    last_active_at: Moment = (0, 0)

    def record(self, seq: int) -> Rec | None:
        """Finds the record with this seq."""
        return next((record for record in self.records if record.seq == seq), None)

    def kept_by_trim(self, keep_last: int) -> list[Rec]:
        """Returns the most recent records, so many that no group is split."""
        return self.records[clean_cut(self.records, max(0, len(self.records) - keep_last)) :]

    def inherited(self, history: str, count: int = 0) -> tuple[list[Rec], int]:
        """Returns what a fork inherits, and how many records of incomplete groups it leaves out."""
        if history == "up_to_seq":
            taken = [record for record in self.records if record.seq <= count]
        elif history == "last":
            taken = self.kept_by_trim(count)
        else:
            taken = self.records if history == "all" else []
        left_out = incomplete(taken)
        return [record for position, record in enumerate(taken) if position not in left_out], len(left_out)

    def context(self, max_records: int | None, max_characters: int | None) -> Context:
        """Returns the history that a send needs within a budget."""
        most = len(self.records) if max_records is None else min(max_records, len(self.records))
        start = len(self.records) - most
        if max_characters is not None:
            while start < len(self.records) and sum(r.characters for r in self.records[start:]) > max_characters:
                start += 1
        # Groups are those of the whole history: the edge of the budget makes none incomplete, it leaves them out.
        found = groups(self.records)
        cut_off = {position for group in found if group.spans(start) for position in group.positions}
        broken = {position for group in found if not group.complete for position in group.positions}
        shown = [
            record
            for position, record in enumerate(self.records)
            if position >= start and position not in cut_off and position not in broken
        ]
        within = range(start, len(self.records))
        return Context(
            shown,
            len([position for position in within if position in broken]),
            older_left_out=start > 0,
        )


@dataclass(frozen=True)
class Context:
    """What GetContext must show."""

    records: list[Rec]
    incomplete: int
    older_left_out: bool


def diff(left: Session, right: Session) -> tuple[int, int, int]:
    """Returns the seq through which both show the same, and where each goes on alone (0: nowhere)."""
    floor = max(left.floor, right.floor)
    lefts = [record for record in left.records if record.seq > floor]
    rights = [record for record in right.records if record.seq > floor]
    common = 0
    while common < min(len(lefts), len(rights)) and lefts[common] is rights[common]:
        common += 1
    return (
        lefts[common - 1].seq if common else 0,
        next((record.seq for record in lefts[common:] if record not in rights), 0),
        next((record.seq for record in rights[common:] if record not in lefts), 0),
    )
