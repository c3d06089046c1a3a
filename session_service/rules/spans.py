"""Histories as lists of spans: a pure arithmetic of which records a session shows.

A history is an ordered list of spans; seqs ascend along it. Every seq of a span up to the session's
head has a record, since seqs are given one after another within a span and erased only when no span
covers them. So records are counted and cut without reading one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

OPEN_END = (1 << 63) - 1
"""The last seq of a span that still grows."""


class Span(NamedTuple):
    """The records of one origin from ``first_seq`` to ``last_seq``, both included.

    A named tuple, because the end of a chain of forks has a span for each of them.
    """

    origin: str
    first_seq: int
    last_seq: int = OPEN_END

    @property
    def length(self) -> int:
        """How many records it covers."""
        return self.last_seq - self.first_seq + 1


@dataclass(frozen=True, slots=True)
class Released:
    """A range that the session with the origin ``owner`` dropped, and that nobody may need any more."""

    owner: str
    span: Span


def clip(spans: Iterable[Span], first_seq: int, last_seq: int) -> list[Span]:
    """Returns what the spans show from ``first_seq`` to ``last_seq``."""
    clipped = []
    for span in spans:
        origin, first, last = span
        if first_seq <= first and last <= last_seq:
            # Most are whole, and to make one costs more than to compare it.
            clipped.append(span)
        elif (first := max(first, first_seq)) <= (last := min(last, last_seq)):
            clipped.append(Span(origin, first, last))
    return clipped


def joined(spans: Iterable[Span]) -> list[Span]:
    """Returns the same history in as few spans as it takes."""
    result: list[Span] = []
    for span in spans:
        if result and result[-1].origin == span.origin and result[-1].last_seq + 1 == span.first_seq:
            result[-1] = Span(span.origin, result[-1].first_seq, span.last_seq)
        else:
            result.append(span)
    return result


def without(spans: Iterable[Span], seqs: Iterable[int]) -> list[Span]:
    """Returns the history with some records left out; a span around one is split."""
    left_out = sorted(set(seqs))
    result: list[Span] = []
    place = 0
    for span in spans:
        first = span.first_seq
        while place < len(left_out) and left_out[place] < first:
            place += 1
        while place < len(left_out) and left_out[place] <= span.last_seq:
            seq = left_out[place]
            if first < seq:
                result.append(Span(span.origin, first, seq - 1))
            first = seq + 1
            place += 1
        if first <= span.last_seq:
            result.append(Span(span.origin, first, span.last_seq))
    return result


def dropped(before: Sequence[Span], after: Sequence[Span]) -> list[Span]:
    """Returns what ``before`` shows and ``after`` does not; both without open ends."""
    kept: dict[str, list[Span]] = {}
    for span in after:
        kept.setdefault(span.origin, []).append(span)
    result: list[Span] = []
    for span in before:
        first = span.first_seq
        for keep in kept.get(span.origin, ()):
            if keep.last_seq < first or keep.first_seq > span.last_seq:
                continue
            if first < keep.first_seq:
                result.append(Span(span.origin, first, keep.first_seq - 1))
            first = keep.last_seq + 1
        if first <= span.last_seq:
            result.append(Span(span.origin, first, span.last_seq))
    return result


def uncovered(span: Span, covers: Iterable[tuple[int, int]]) -> list[Span]:
    """Returns the parts of a span that no range (first, last) among the covers of its origin touches."""
    gaps: list[Span] = []
    at = span.first_seq
    for first, last in sorted(covers):
        if at > span.last_seq:
            break
        if at < first:
            gaps.append(Span(span.origin, at, min(first - 1, span.last_seq)))
        at = max(at, last + 1)
    if at <= span.last_seq:
        gaps.append(Span(span.origin, at, span.last_seq))
    return gaps


def count(spans: Iterable[Span]) -> int:
    """Returns how many records the spans show."""
    return sum([last - first + 1 for _, first, last in spans])


def take(spans: Sequence[Span], wanted: int, *, descending: bool = False) -> list[Span]:
    """Returns the part that shows the first ``wanted`` records, or the last ones where ``descending``."""
    if count(spans) <= wanted:
        return list(spans)
    part: list[Span] = []
    for span in reversed(spans) if descending else spans:
        if wanted <= 0:
            break
        origin, first, last = span
        length = last - first + 1
        if length > wanted:
            first = last - wanted + 1 if descending else first
            span = Span(origin, first, first + wanted - 1)
        part.append(span)
        wanted -= length
    return part[::-1] if descending else part


def skip(spans: Sequence[Span], offset: int, *, descending: bool = False) -> list[Span]:
    """Returns what remains without the first ``offset`` records, or without the last ones where ``descending``."""
    return take(spans, max(0, count(spans) - offset), descending=not descending)


def seq_of_last(spans: Sequence[Span], wanted: int) -> int | None:
    """Returns the seq of the first of the most recent ``wanted`` records.

    None where the history has no more than that, or where nothing is wanted.
    """
    if wanted <= 0:
        return None
    for span in reversed(spans):
        if span.length >= wanted:
            first = span.last_seq - wanted + 1
            return None if span is spans[0] and first == span.first_seq else first
        wanted -= span.length
    return None


def seq_before(spans: Sequence[Span], seq: int) -> int | None:
    """Returns the seq of the record before ``seq``, None where there is none."""
    found = None
    for span in spans:
        if span.first_seq >= seq:
            break
        found = min(span.last_seq, seq - 1)
    return found


def shows(spans: Iterable[Span], seq: int) -> Span | None:
    """Returns the span that shows ``seq``."""
    for span in spans:
        if span.first_seq <= seq <= span.last_seq:
            return span
    return None


def common_through(left: Iterable[Span], right: Iterable[Span]) -> int:
    """Returns the seq of the last record of the longest common beginning, 0 where there is none."""
    last = 0
    for ours, theirs in zip(joined(left), joined(right), strict=False):
        if ours.origin != theirs.origin or ours.first_seq != theirs.first_seq:
            break
        last = min(ours.last_seq, theirs.last_seq)
        # Joined spans never go on where the one before ended, so the shorter side differs from here on.
        if ours.last_seq != theirs.last_seq:
            break
    return last


def first_own(ours: Sequence[Span], theirs: Sequence[Span], after_seq: int) -> int:
    """Returns the first seq after ``after_seq`` whose record only ``ours`` shows, 0 where there is none."""
    own = dropped(clip(ours, after_seq + 1, OPEN_END), theirs)
    return min((span.first_seq for span in own), default=0)
