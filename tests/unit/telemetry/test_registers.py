"""The merge is commutative, associative and idempotent, whatever the events are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from telemetry.rules.events import DiagnosisCompleted, DiagnosisStarted, Event, StepCompleted, StepStarted
from telemetry.rules.merging import (
    LONGEST_MS,
    diagnosis_columns,
    diagnosis_parts,
    duration,
    microseconds,
    moment_of,
    step_columns,
    step_parts,
)
from telemetry.rules.registers import NOTHING, Merged, merge, pack, unpack
from telemetry.rules.values import ENDS, RunStatus, SelfEvaluation, Usage, shown_status

_START = datetime(2026, 6, 26, tzinfo=UTC)

moments = st.integers(0, 5).map(lambda seconds: _START + timedelta(seconds=seconds))
maybe = st.one_of(st.none(), moments)
words = st.sampled_from(["", "a", "b"])
ends = st.sampled_from(sorted(ENDS))
tokens = st.one_of(st.none(), st.integers(0, 3))
usages = st.one_of(st.none(), st.builds(Usage, tokens, tokens, tokens, tokens, tokens))

step_bodies = st.one_of(
    st.builds(StepStarted, st.just("k"), words, st.integers(0, 2), st.just("x"), words, words, words, maybe),
    st.builds(
        StepCompleted,
        *(st.just("k"), words, st.integers(0, 2), st.just("x"), words, words, words, st.booleans(), ends, words),
        *(words, words, usages, st.one_of(st.none(), st.integers(-1, 3)), maybe, maybe),
    ),
)
diagnosis_bodies = st.one_of(
    st.builds(DiagnosisStarted, words, words, words, maybe),
    st.builds(DiagnosisCompleted, ends, maybe, words),
    st.builds(SelfEvaluation, st.integers(0, 100)),
    step_bodies,
)


def events(bodies: st.SearchStrategy[object]) -> st.SearchStrategy[list[Event]]:
    """Some events with ids of their own."""
    told = st.lists(st.tuples(moments, bodies), max_size=7)
    return told.map(
        lambda pairs: [
            Event(f"e{n}", "d", moment, body, "")  # type: ignore[arg-type]  # a strategy has no such type
            for n, (moment, body) in enumerate(pairs)
        ]
    )


def _step(row: Merged, told: list[Event]) -> Merged:
    for event in told:
        row = merge(row, step_parts(event))
    return row


def _diagnosis(row: Merged, told: list[Event]) -> Merged:
    for event in told:
        row = merge(row, diagnosis_parts(event))
    return row


@given(told=events(step_bodies), data=st.data())
def test_a_step_is_the_same_in_any_order_with_any_repeats(told: list[Event], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(told))
    repeated = data.draw(st.lists(st.sampled_from(told), max_size=5)) if told else []
    first, second = _step(NOTHING, told), _step(NOTHING, shuffled + repeated)
    assert first == second
    assert step_columns(first.columns) == step_columns(second.columns)


@given(told=events(diagnosis_bodies), data=st.data())
def test_a_diagnosis_is_the_same_in_any_order_with_any_repeats(told: list[Event], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(told))
    repeated = data.draw(st.lists(st.sampled_from(told), max_size=5)) if told else []
    first, second = _diagnosis(NOTHING, told), _diagnosis(NOTHING, shuffled + repeated)
    assert first == second
    assert diagnosis_columns(first.columns) == diagnosis_columns(second.columns)


@given(told=events(step_bodies), cut=st.integers(0, 7))
def test_a_row_that_was_stored_between_merges_as_if_it_had_not(told: list[Event], cut: int) -> None:
    half = _step(NOTHING, told[:cut])
    stored = Merged(half.columns, unpack(pack(half.stamps)))
    assert _step(stored, told[cut:]) == _step(NOTHING, told)


@given(told=events(step_bodies))
def test_what_is_known_already_leaves_the_very_same_row(told: list[Event]) -> None:
    row = _step(NOTHING, told)
    for event in told:
        assert merge(row, step_parts(event)) is row


@given(told=events(step_bodies))
def test_an_end_is_never_taken_back(told: list[Event]) -> None:
    row, ended = NOTHING, False
    for event in told:
        row = merge(row, step_parts(event))
        ended = ended or row.columns["status"] in ENDS
        assert (row.columns["status"] in ENDS) == ended


@given(told=events(step_bodies))
def test_an_error_message_only_comes_with_its_own_end(told: list[Event]) -> None:
    columns = _step(NOTHING, told).columns
    if columns.get("status") in ENDS:
        texts = [
            event.body.error_message
            for event in told
            if isinstance(event.body, StepCompleted)
            and event.body.status == columns["status"]
            and (event.body.ended_at or event.occurred_at) == columns["ended_at"]
        ]
        assert columns["error_message"] in texts


def test_no_stamps_are_read_from_a_row_that_was_not_made_by_us() -> None:
    assert unpack(None) == unpack("") == {}


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_moment_survives_being_packed(moment: datetime) -> None:
    assert moment_of(microseconds(moment)) == moment


def test_impossible_durations_are_zero_and_flagged() -> None:
    later = _START + timedelta(seconds=1, microseconds=999)
    assert duration(None, _START, later) == (1000, False)
    assert duration(None, later, _START) == (0, True)
    assert duration(5, later, _START) == (5, False)
    assert duration(-1, None, None) == (0, True)
    assert duration(LONGEST_MS, None, None) == (LONGEST_MS, False)
    assert duration(LONGEST_MS + 1, None, None) == (0, True)
    assert duration(None, None, later) == duration(None, later, None) == (None, False)


def test_a_run_of_which_nothing_is_heard_is_shown_as_abandoned() -> None:
    late = _START + timedelta(seconds=900)
    assert shown_status(RunStatus.RUNNING, _START, late, 900) is RunStatus.ABANDONED
    assert shown_status(RunStatus.PENDING, _START, late, 900) is RunStatus.ABANDONED
    assert shown_status(RunStatus.RUNNING, _START, late, 901) is RunStatus.RUNNING
    for end in ENDS:
        assert shown_status(end, _START, late, 900) is end
