"""What a turn tells: as it goes on, and at its end."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TypeAlias

from ramet.client import Record, Session, ToolCall, Usage

__all__ = ["Reply", "TextDelta", "ThoughtDelta", "ToolAnswered", "ToolCalled", "TurnEvent", "summed"]


@dataclass(frozen=True)
class TextDelta:
    """A part of what the model says."""

    text: str
    """In order; those of one call of the model are its whole text."""
    round: int
    """Which call of the model in this turn, from 1; the text of the last is the reply's."""


@dataclass(frozen=True)
class ThoughtDelta:
    """A part of the model's reasoning, where it tells some."""

    text: str
    """In order."""
    round: int
    """Which call of the model in this turn, from 1."""


@dataclass(frozen=True)
class ToolCalled:
    """The model calls a tool, which now begins."""

    call: ToolCall
    """As it will be kept."""


@dataclass(frozen=True)
class ToolAnswered:
    """A tool has answered; parallel calls do so in any order."""

    call: ToolCall
    """What it answers."""
    record: Record
    """As it will be kept; an error where its metadata_json says so."""


@dataclass(frozen=True)
class Reply:
    """A turn that was written."""

    text: str
    """The model's final answer."""
    records: tuple[Record, ...]
    """All that the turn appended, with their seqs: the message first, the final answer last."""
    request_id: str
    """The id of the turn: sending again with it writes nothing and returns this turn."""
    session: Session | None = None
    """The session after the turn; None where a repeated send finds it gone."""
    usages: tuple[Usage | None, ...] = ()
    """What each call of the model took; None where it did not tell."""
    insight_consumed: bool = False
    """Whether the turn read an insight, which is now unset."""
    newer_insight: bool = False
    """Whether the insight that the turn read was replaced meanwhile: what replaced it stays for the next turn."""
    older_left_out: bool = False
    """Whether the budget left out older history."""
    incomplete_records: int = 0
    """Records of the history that the model did not see, because their tool-call group is incomplete."""
    repeated: bool = False
    """Whether an earlier send with the same id wrote this turn; what only that one knew is then not told."""

    @property
    def usage(self) -> Usage:
        """The sum over the calls of the model; a number that one call did not tell is None."""
        return summed(self.usages)


TurnEvent: TypeAlias = TextDelta | ThoughtDelta | ToolCalled | ToolAnswered | Reply
"""What a stream yields; the reply comes last, once the turn is written."""


def summed(usages: Sequence[Usage | None]) -> Usage:
    """Adds up tokens and cost; what is unknown of one is unknown of all."""
    totals: dict[str, int | None] = {}
    for each in fields(Usage):
        values = [None if usage is None else getattr(usage, each.name) for usage in usages]
        known = [value for value in values if value is not None]
        totals[each.name] = sum(known) if known and len(known) == len(values) else None
    return Usage(**totals)
