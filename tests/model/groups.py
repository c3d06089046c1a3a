"""Tool-call groups in a plain list of records, as the contract defines them.

Written for clarity over the whole list: the service must come to the same without reading a whole history.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class Spoken(Protocol):
    """What of a record makes groups."""

    @property
    def call_ids(self) -> Sequence[str]:
        """Ids of the tool calls that it makes."""
        ...

    @property
    def answers(self) -> str:
        """Id of the tool call that it answers; empty where it answers none."""
        ...


@dataclass(frozen=True)
class Group:
    """Positions of an assistant record with tool calls and of the records that answer it, or of a stray answer."""

    positions: tuple[int, ...]
    complete: bool

    def spans(self, cut: int) -> bool:
        """Tells whether a cut before this position would split the group."""
        return self.positions[0] < cut <= self.positions[-1]


def groups(records: Sequence[Spoken]) -> list[Group]:
    """Returns the groups of a history.

    A group lies within a run of records that make calls or answer some: what comes after another record answers
    nothing before it. An answer belongs to the nearest earlier call of its id that has none yet.
    """
    found: list[tuple[list[int], set[str]]] = []
    strays: list[int] = []
    open_calls: list[tuple[str, int]] = []
    for position, record in enumerate(records):
        if record.call_ids:
            found.append(([position], set(record.call_ids)))
            open_calls.extend((call_id, len(found) - 1) for call_id in record.call_ids)
        elif record.answers:
            matching = [number for call_id, number in open_calls if call_id == record.answers]
            if not matching:
                strays.append(position)
                continue
            positions, unanswered = found[matching[-1]]
            positions.append(position)
            unanswered.discard(record.answers)
            open_calls.remove((record.answers, matching[-1]))
        else:
            open_calls.clear()
    return [
        *(Group(tuple(positions), not unanswered) for positions, unanswered in found),
        *(Group((position,), complete=False) for position in strays),
    ]


def incomplete(records: Sequence[Spoken]) -> set[int]:
    """Returns the positions of all records whose group is incomplete."""
    return {position for group in groups(records) if not group.complete for position in group.positions}


def clean_cut(records: Sequence[Spoken], wanted: int) -> int:
    """Returns the last position up to ``wanted`` before which a cut splits no group."""
    all_groups = groups(records)
    cut = wanted
    while any(group.spans(cut) for group in all_groups):
        cut -= 1
    return cut
