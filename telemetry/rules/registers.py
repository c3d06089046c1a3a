"""Rows that merge in any order: each group of columns is a register that the greatest stamp wins.

Taking the greatest is commutative, associative and idempotent, and so is the merge: whatever the order
of arrival, however often an event comes, and however events are cut into batches, the row is the same.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from json.encoder import encode_basestring_ascii as _quoted
from typing import Any, NamedTuple


class Stamp(NamedTuple):
    """What decides between two events that give the same columns; the fields count in this order."""

    kind: int
    """How much the event's kind knows: an end more than a start."""
    moment_us: int
    """The client's time, in microseconds since 1970; of an end, the time of the end."""
    rank: int
    """Of two ends of one moment: FAILED over CANCELLED over SUCCESS."""
    event_id: str
    """So that no two stamps are equal."""


class Part(NamedTuple):
    """What one event says of one group of columns."""

    group: str
    stamp: Stamp
    columns: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Merged:
    """A row so far: its columns, and per group the stamp that they came with."""

    columns: Mapping[str, Any]
    """Columns that nobody gave are missing; so are great texts of a row that was read back."""
    stamps: Mapping[str, Stamp]


NOTHING = Merged({}, {})
"""A row of which nothing is known."""


def merge(row: Merged, parts: Iterable[Part]) -> Merged:
    """Returns the row with what the parts know better; the same object where they know nothing better."""
    columns: dict[str, Any] | None = None
    stamps: dict[str, Stamp] = {}
    for part in parts:
        if columns is None:
            held = row.stamps.get(part.group)
            if held is not None and held >= part.stamp:
                continue
            columns, stamps = dict(row.columns), dict(row.stamps)
        held = stamps.get(part.group)
        if held is None or held < part.stamp:
            columns.update(part.columns)
            stamps[part.group] = part.stamp
    return row if columns is None else Merged(columns, stamps)


def pack(stamps: Mapping[str, Stamp]) -> str:
    """Writes stamps as text; groups of one event share its stamp."""
    if len(set(stamps.values())) == 1:
        # Most rows are of one event, and took 11 us the other way, here 3.
        kind, moment_us, rank, event_id = next(iter(stamps.values()))
        return f"[[{kind},{moment_us},{rank},{_quoted(event_id)},{_named(tuple(stamps))}]]"
    groups: dict[Stamp, list[str]] = {}
    for group, stamp in sorted(stamps.items()):
        groups.setdefault(stamp, []).append(group)
    return json.dumps([[*stamp, *named] for stamp, named in sorted(groups.items())], separators=(",", ":"))


@cache
def _named(groups: tuple[str, ...]) -> str:
    return ",".join([_quoted(group) for group in sorted(groups)])


def unpack(text: str | None) -> dict[str, Stamp]:
    """Reads what ``pack`` wrote; none in a row that was not made by us."""
    if not text:
        return {}
    return {group: Stamp(*entry[:4]) for entry in json.loads(text) for group in entry[4:]}
