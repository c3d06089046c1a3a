"""Merges events into rows within one transaction, by a number of statements that does not grow with the events."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from telemetry.rules.events import Event, StepCompleted, StepStarted, ToolCompleted
from telemetry.rules.merging import diagnosis_columns, diagnosis_parts, step_columns, step_parts, tool_parts
from telemetry.rules.ports import DiagnosisRow, Key, KeyedRow, KeyTaken, UnitOfWork, Word
from telemetry.rules.registers import NOTHING, Merged, Part, merge
from telemetry.rules.row_ids import RowIds
from telemetry.rules.values import Feedback


def absorb(unit: UnitOfWork, events: Sequence[Event], ids: RowIds, now: datetime) -> None:
    """Merges events that were not taken before, and brings the totals of their diagnoses up to date."""
    if not events:
        return
    diagnoses = locked(unit, {event.session_id for event in events}, ids, now)
    by_session: dict[str, list[Part]] = {}
    heard: set[str] = set()
    for event in events:
        by_session.setdefault(event.session_id, []).extend(diagnosis_parts(event))
        # What people say of a diagnosis is no sign that it still runs.
        if not isinstance(event.body, Feedback):
            heard.add(event.session_id)
    latest = hear(unit, [word_of(event) for event in events if isinstance(event.body, Feedback)])
    _absorb_steps_and_tools(unit, events, ids, now)
    rows = [
        replace(
            row,
            merged=merge(row.merged, by_session[row.session_id]),
            feedback=latest.get(row.session_id, row.feedback),
            last_heard_at=now if row.session_id in heard else row.last_heard_at,
        )
        for row in diagnoses
    ]
    save(unit, rows, now)


def locked(unit: UnitOfWork, session_ids: Collection[str], ids: RowIds, now: datetime) -> list[DiagnosisRow]:
    """Returns the diagnoses, locked, each made where it is new."""
    found = unit.diagnoses.lock(session_ids)
    missing = sorted(set(session_ids) - found.keys())
    if missing:
        made = [DiagnosisRow(ids.take(now), session_id, NOTHING, None, now, now) for session_id in missing]
        if unit.diagnoses.insert_missing(made):
            # Nobody else has seen them: to read them back would be a trip for nothing.
            found |= {row.session_id: row for row in made}
        else:
            # Others have made some of them meanwhile.
            found |= unit.diagnoses.lock(missing)
    if len(found) < len(session_ids):
        # The database took a number of ours for another's row.
        raise KeyTaken
    return [found[session_id] for session_id in sorted(found)]


def save(unit: UnitOfWork, rows: Sequence[DiagnosisRow], now: datetime) -> None:
    """Stores locked diagnoses with what follows from their columns and from their rows."""
    totals = unit.diagnoses.totals([row.session_id for row in rows])
    finished = [replace(row, merged=replace(row.merged, columns=diagnosis_columns(row.merged.columns))) for row in rows]
    unit.diagnoses.save(finished, totals, now)


def word_of(event: Event) -> Word:
    """Returns what a feedback event says."""
    if not isinstance(event.body, Feedback):
        raise TypeError("The event is no feedback.")
    return Word(event.session_id, event.body, event.occurred_at, event.event_id)


def hear(unit: UnitOfWork, words: Sequence[Word]) -> Mapping[str, str]:
    """Keeps the latest word of each source of locked diagnoses; returns by diagnosis the latest value of all."""
    if not words:
        return {}
    kept = {
        (word.session_id, word.feedback.source): word for word in unit.words.of({each.session_id for each in words})
    }
    changed: dict[Key, Word] = {}
    for word in words:
        key = (word.session_id, word.feedback.source)
        held = kept.get(key)
        if held is None or _place(held) < _place(word):
            kept[key] = changed[key] = word
    unit.words.save(list(changed.values()))
    latest: dict[str, Word] = {}
    for word in kept.values():
        held = latest.get(word.session_id)
        if held is None or _place(held) < _place(word):
            latest[word.session_id] = word
    return {session_id: word.feedback.value for session_id, word in latest.items()}


def _place(word: Word) -> tuple[datetime, str]:
    return word.said_at, word.event_id


def _absorb_steps_and_tools(unit: UnitOfWork, events: Sequence[Event], ids: RowIds, now: datetime) -> None:
    step_events = list(_keyed(events, _step_key))
    tool_events = list(_keyed(events, _invocation_key))
    # The steps of tool calls are read too: a tool call keeps the id of its step.
    makers = {key for event in events for key in _maker(event)}
    known = unit.steps.of({key for key, _ in step_events} | makers)
    steps = _merged(known, step_events, step_parts, ids, now)
    unit.steps.save([row.with_merged(_finished(row)) for row in steps.values()], now)
    step_ids = {key: row.id for key, row in (known | steps).items()}
    if tool_events:
        tools = _merged(unit.tool_calls.of({key for key, _ in tool_events}), tool_events, tool_parts, ids, now)
        unit.tool_calls.save(list(tools.values()), step_ids, now)
    new = steps.keys() - known.keys()
    if new:
        unit.tool_calls.adopt(new, now)


def _merged(
    known: Mapping[Key, KeyedRow],
    events: Iterable[tuple[Key, Event]],
    parts: Callable[[Event], Iterator[Part]],
    ids: RowIds,
    now: datetime,
) -> dict[Key, KeyedRow]:
    """Returns the rows that the events change, the new ones numbered in the order in which they come."""
    changed: dict[Key, KeyedRow] = {}
    for key, event in events:
        row = changed.get(key) or known.get(key)
        if row is None:
            row = KeyedRow(ids.take(now), *key, NOTHING, now, stored=False)
        merged = merge(row.merged, parts(event))
        if merged is not row.merged:
            changed[key] = row.with_merged(merged)
    return changed


def _finished(row: KeyedRow) -> Merged:
    return Merged(step_columns(row.merged.columns), row.merged.stamps)


def _keyed(events: Sequence[Event], key: Callable[[Event], str | None]) -> Iterator[tuple[Key, Event]]:
    for event in events:
        named = key(event)
        if named is not None:
            yield (event.session_id, named), event


def _step_key(event: Event) -> str | None:
    return event.body.step_key if isinstance(event.body, StepStarted | StepCompleted) else None


def _invocation_key(event: Event) -> str | None:
    return event.body.invocation_key if isinstance(event.body, ToolCompleted) else None


def _maker(event: Event) -> Iterator[Key]:
    if isinstance(event.body, ToolCompleted) and event.body.step_key:
        yield event.session_id, event.body.step_key
