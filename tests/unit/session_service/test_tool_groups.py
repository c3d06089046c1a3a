"""Tool-call groups, by examples and against a plain reading of the definition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_service.rules.tool_groups import (
    STATE_LIMIT,
    Group,
    Tracker,
    clean_cut,
    groups_of,
    in_block,
    incomplete_seqs,
    orphans_from,
)
from session_service.rules.values import LightRecord, Role


def history(text: str) -> list[LightRecord]:
    """Reads ``u a(x,y) t(x)``: a user record, an assistant that calls x and y, the answer to x."""
    records = []
    for seq, word in enumerate(text.split(), start=1):
        ids = tuple(word[2:-1].split(",")) if "(" in word else ()
        if word[0] == "t":
            records.append(LightRecord(seq, Role.TOOL, tool_call_id=ids[0]))
        else:
            role = Role.ASSISTANT if word[0] == "a" else Role.USER
            records.append(LightRecord(seq, role, call_ids=ids))
    return records


words = st.sampled_from(["u", "a", "a(x)", "a(y)", "a(x,y)", "a(z,x)", "t(x)", "t(y)", "t(z)"])
histories = st.lists(words, max_size=14).map(lambda parts: history(" ".join(parts)))


def by_definition(records: list[LightRecord]) -> set[tuple[tuple[int, ...], bool]]:
    """The groups and whether each is complete, read straight from the definition."""
    calls: list[tuple[LightRecord, str]] = []
    answered: dict[tuple[int, str], int] = {}
    orphans = []
    for record in records:
        if not in_block(record):
            calls = []
        elif record.role is Role.TOOL:
            free = [(c.seq, i) for c, i in calls if i == record.tool_call_id and (c.seq, i) not in answered]
            if free:
                answered[free[-1]] = record.seq
            else:
                orphans.append(record.seq)
        else:
            calls += [(record, call_id) for call_id in record.call_ids]
    result: set[tuple[tuple[int, ...], bool]] = {((seq,), False) for seq in orphans}
    for record in records:
        if record.call_ids:
            got = [answered[record.seq, i] for i in record.call_ids if (record.seq, i) in answered]
            result.add(((record.seq, *sorted(got)), len(got) == len(record.call_ids)))
    return result


@given(histories)
def test_groups_are_those_of_the_definition(records: list[LightRecord]) -> None:
    assert {(group.seqs, group.complete) for group in groups_of(records)} == by_definition(records)


@given(histories, st.integers(0, 14))
def test_a_part_read_to_the_end_pairs_as_the_whole_does(records: list[LightRecord], start: int) -> None:
    whole = {seq: group for group in groups_of(records) for seq in group.seqs}
    for group in groups_of(records[start:]):
        if not group.orphan:
            assert set(group.seqs) == {seq for seq in whole[group.seqs[0]].seqs if seq > start}
            assert group.complete == whole[group.seqs[0]].complete


@given(histories, st.integers(1, 14))
def test_a_clean_cut_splits_no_group_and_keeps_no_more_than_it_must(records: list[LightRecord], seq: int) -> None:
    groups = groups_of(records)

    def splits(cut: int) -> bool:
        return any(group.seqs[0] < cut <= group.seqs[-1] for group in groups)

    cut = clean_cut(groups, seq)
    assert cut <= seq
    assert not splits(cut)
    assert all(splits(between) for between in range(cut + 1, seq + 1))


@given(histories, st.integers(0, 14))
def test_state_survives_between_appends(records: list[LightRecord], pause: int) -> None:
    groups: list[Group] = []
    tracker: Tracker | None = Tracker()
    for record in records[:pause]:
        assert tracker is not None
        groups += tracker.add(record)
    assert tracker is not None
    tracker = Tracker.decode(tracker.encode())
    assert tracker is not None
    for record in records[pause:]:
        groups += tracker.add(record)
    assert groups + tracker.pending() == groups_of(records)


@pytest.mark.parametrize(
    ("text", "incomplete"),
    [
        ("u a(x) t(x) a", set()),
        ("a(x) a(y) t(x) t(y)", set()),
        ("a(x) t(x) t(x)", {3}),
        ("a(x,y) t(x) u", {1, 2}),
        ("a(x) u t(x)", {1, 3}),
        ("a(x) a(x) t(x)", {1}),
        ("t(x) u", {1}),
        ("a(x)", {1}),
    ],
)
def test_incomplete_records(text: str, incomplete: set[int]) -> None:
    assert incomplete_seqs(groups_of(history(text))) == incomplete


def test_orphans_are_told_from_a_place_on() -> None:
    groups = groups_of(history("t(x) u t(y) u"))
    assert orphans_from(groups, 3)
    assert not orphans_from(groups, 4)


def test_trimmed_groups_are_forgotten() -> None:
    tracker = Tracker()
    for record in history("a(x) a(y)"):
        tracker.add(record)
    tracker.forget_through(1)
    assert [group.seqs for group in tracker.pending()] == [(2,)]


def test_a_state_that_grows_too_long_is_left_to_the_history() -> None:
    tracker = Tracker()
    for seq in range(1, 400):
        tracker.add(LightRecord(seq, Role.ASSISTANT, call_ids=(f"{seq}" * 80,)))
    text = tracker.encode()
    assert text is not None
    assert len(text) <= STATE_LIMIT
    assert Tracker.decode(text) is None
