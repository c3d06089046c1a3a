"""The arithmetic of spans, checked against lists of records spelt out."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from session_service.rules import spans
from session_service.rules.spans import Span

History = list[tuple[str, int]]


def spelt(history: list[Span]) -> History:
    return [(span.origin, seq) for span in history for seq in range(span.first_seq, span.last_seq + 1)]


@st.composite
def histories(draw: st.DrawFn) -> list[Span]:
    """Histories over three origins, with gaps."""
    result: list[Span] = []
    seq = 1
    for _ in range(draw(st.integers(0, 6))):
        first = seq + draw(st.integers(0, 2))
        last = first + draw(st.integers(0, 3))
        result.append(Span(draw(st.sampled_from("abc")), first, last))
        seq = last + 1
    return result


@given(histories(), st.integers(0, 30), st.integers(0, 30))
def test_clip_keeps_exactly_the_range(history: list[Span], first: int, last: int) -> None:
    assert spelt(spans.clip(history, first, last)) == [r for r in spelt(history) if first <= r[1] <= last]


@given(histories())
def test_joined_shows_the_same_in_as_few_spans(history: list[Span]) -> None:
    result = spans.joined(history)
    assert spelt(result) == spelt(history)
    pairs = itertools.pairwise(result)
    assert all(a.origin != b.origin or a.last_seq + 1 != b.first_seq for a, b in pairs)


@given(histories(), st.sets(st.integers(1, 30)))
def test_without_leaves_exactly_those_out(history: list[Span], seqs: set[int]) -> None:
    assert spelt(spans.without(history, seqs)) == [r for r in spelt(history) if r[1] not in seqs]


@given(histories(), histories())
def test_dropped_is_the_difference(before: list[Span], after: list[Span]) -> None:
    kept = set(spelt(after))
    assert spelt(spans.dropped(before, after)) == [r for r in spelt(before) if r not in kept]


@given(st.integers(1, 20), st.integers(1, 20), st.lists(st.tuples(st.integers(1, 25), st.integers(1, 25))))
def test_uncovered_is_what_no_cover_touches(first: int, last: int, covers: list[tuple[int, int]]) -> None:
    covers = [(a, b) for a, b in covers if a <= b]
    shown = [seq for _, seq in spelt(spans.uncovered(Span("a", first, last), covers))]
    assert shown == [seq for seq in range(first, last + 1) if not any(a <= seq <= b for a, b in covers)]


@given(histories(), st.integers(0, 30))
def test_seq_of_last_cuts_before_the_most_recent(history: list[Span], wanted: int) -> None:
    records = spelt(history)
    expected = records[-wanted][1] if 0 < wanted < len(records) else None
    assert spans.seq_of_last(history, wanted) == expected
    assert spans.count(history) == len(records)


@given(histories(), st.integers(0, 30), st.booleans())
def test_take_and_skip_divide_a_history(history: list[Span], wanted: int, descending: bool) -> None:
    records = spelt(history)
    end = max(0, len(records) - wanted)
    first, rest = (records[end:], records[:end]) if descending else (records[:wanted], records[wanted:])
    assert spelt(spans.take(history, wanted, descending=descending)) == first
    assert spelt(spans.skip(history, wanted, descending=descending)) == rest


@given(histories(), st.integers(0, 30))
def test_places_are_found(history: list[Span], seq: int) -> None:
    records = spelt(history)
    assert spans.seq_before(history, seq) == max((s for _, s in records if s < seq), default=None)
    shown = spans.shows(history, seq)
    assert (shown.origin if shown else None) == next((o for o, s in records if s == seq), None)


@given(histories(), histories(), st.integers(0, 12))
def test_diff_finds_the_common_beginning_and_each_own_part(left: list[Span], right: list[Span], shared: int) -> None:
    # Two histories that begin alike, as those of a fork do.
    right = [*spans.clip(left, 0, shared), *spans.clip(right, shared + 1, 99)]
    ours, theirs = spelt(left), spelt(right)
    common = 0
    for a, b in zip(ours, theirs, strict=False):
        if a != b:
            break
        common = a[1]
    assert spans.common_through(left, right) == common
    expected = next((s for o, s in ours if s > common and (o, s) not in set(theirs)), 0)
    assert spans.first_own(left, right, common) == expected
