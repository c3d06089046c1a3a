"""Tool-call groups: an assistant record with calls, and the TOOL records that answer them.

A block is a run of records that are TOOL or make calls; any other record ends it. Within a block a
TOOL record answers the nearest earlier call of its id that has no answer yet. A group is incomplete
while a call of it lacks its answer; a TOOL record that answers nothing is an incomplete group alone.

Two facts make local reading enough. Groups never reach out of their block. And in a part of a block
that is read from somewhere to its end, every answer found within the part is the true one, since the
nearest call wins: only TOOL records that found no call there may still belong to an earlier one.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from session_service.rules.values import LightRecord, Role

STATE_LIMIT = 64 * 1024
"""Longest state that is kept beside a session, in characters; beyond it history is read instead."""

_UNKNOWN = "?"


@dataclass(frozen=True, slots=True)
class Group:
    """The records of one group."""

    seqs: tuple[int, ...]
    """Ascending; the assistant record first, unless it is an orphan."""
    complete: bool
    orphan: bool = False
    """Whether it is a TOOL record that answers nothing."""


@dataclass(slots=True)
class _Open:
    seqs: list[int]
    unanswered: list[str]

    def group(self, *, complete: bool) -> Group:
        return Group(tuple(self.seqs), complete)


def in_block(record: LightRecord) -> bool:
    """Tells whether a record belongs to a block."""
    return record.role is Role.TOOL or bool(record.call_ids)


@dataclass(slots=True)
class Tracker:
    """Follows a history forward and tells which groups end."""

    _open: list[_Open] = field(default_factory=list)

    def add(self, record: LightRecord) -> list[Group]:
        """Takes the next record in; returns the groups that it completes or leaves broken for good."""
        if record.call_ids:
            self._open.append(_Open([record.seq], list(record.call_ids)))
            return []
        if record.role is not Role.TOOL:
            if not self._open:
                return []
            ended = self.pending()
            self._open.clear()
            return ended
        for place in range(len(self._open) - 1, -1, -1):
            found = self._open[place]
            if record.tool_call_id in found.unanswered:
                found.unanswered.remove(record.tool_call_id)
                found.seqs.append(record.seq)
                if found.unanswered:
                    return []
                del self._open[place]
                return [found.group(complete=True)]
        return [Group((record.seq,), complete=False, orphan=True)]

    def pending(self) -> list[Group]:
        """Returns the groups that still lack answers."""
        return [found.group(complete=False) for found in self._open]

    def forget_through(self, seq: int) -> None:
        """Drops the groups that begin at or before ``seq``: they left the history."""
        self._open = [found for found in self._open if found.seqs[0] > seq]

    def encode(self) -> str | None:
        """Returns its state as text: None while nothing is open, ``?`` where it grew too long to keep."""
        if not self._open:
            return None
        text = json.dumps([[found.seqs, found.unanswered] for found in self._open], separators=(",", ":"))
        return text if len(text) <= STATE_LIMIT else _UNKNOWN

    @classmethod
    def decode(cls, text: str | None) -> "Tracker | None":
        """Returns what ``encode`` packed; None where only the history can tell."""
        if text is None:
            return cls()
        if text == _UNKNOWN:
            return None
        return cls([_Open(seqs, unanswered) for seqs, unanswered in json.loads(text)])


def groups_of(records: Iterable[LightRecord]) -> list[Group]:
    """Returns the groups of consecutive records, those still open at the end as incomplete."""
    tracker = Tracker()
    groups = [group for record in records for group in tracker.add(record)]
    return groups + tracker.pending()


def incomplete_seqs(groups: Iterable[Group]) -> set[int]:
    """Returns the records of all incomplete groups."""
    return {seq for group in groups if not group.complete for seq in group.seqs}


def clean_cut(groups: Sequence[Group], seq: int) -> int:
    """Returns the greatest seq, not above ``seq``, before which a history may be cut: no group spans it."""
    # Moving the cut for one group may bring it inside another that was passed before.
    while True:
        earlier = min((g.seqs[0] for g in groups if g.seqs[0] < seq <= g.seqs[-1]), default=seq)
        if earlier == seq:
            return seq
        seq = earlier


def orphans_from(groups: Iterable[Group], seq: int) -> bool:
    """Tells whether a TOOL record at or after ``seq`` found no call among the records read."""
    return any(group.orphan and group.seqs[0] >= seq for group in groups)
