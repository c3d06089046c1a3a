"""What one send needs: system prompt, insight, and history within a budget."""

from collections.abc import Sequence
from dataclasses import dataclass

from ramet_server.domain.call import Call
from ramet_server.domain.ids import check_id
from session_service.rules import requests, spans, tool_groups
from session_service.rules.appending import light
from session_service.rules.history import History
from session_service.rules.ports import Store, UnitOfWork
from session_service.rules.spans import Span
from session_service.rules.values import UNWRITTEN, Record, Session, Slot, SlotName

MAX_RECORDS = 10_000
MAX_TEXT_BYTES = 16 * 1024 * 1024
"""All text of the history, in bytes of UTF-8, whatever the caller's budget."""

_FIRST_STEP = 64
_LARGEST_STEP = 1024
_STEP_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Budget:
    """How much history a caller wants at most; None for no wish."""

    max_records: int | None = None
    max_characters: int | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """What one send needs."""

    session: Session
    system_prompt: Slot
    insight: Slot
    records: Sequence[Record]
    """Oldest first."""
    incomplete_records: int
    older_left_out: bool


class ContextRules:
    """The rules of contexts."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, call: Call, session_id: str, budget: Budget) -> Context:
        """Returns all of it as of one moment."""
        check_id(session_id, "session_id")
        requests.check_not_negative(budget.max_records, "max_records")
        requests.check_not_negative(budget.max_characters, "max_characters")
        return self._store.snapshot(call, lambda unit: _read(unit, session_id, budget))


def _read(unit: UnitOfWork, session_id: str, budget: Budget) -> Context:
    session = requests.found(unit.sessions.get(session_id))
    slots = unit.slots.read(session_id, (SlotName.SYSTEM_PROMPT, SlotName.INSIGHT)) or {}
    shown = spans.clip(unit.spans.of(session.origin), session.floor_seq + 1, session.head_seq)
    window = _newest(unit, session, shown, budget)
    groups = History(unit.records, shown, session.max_record_bytes).groups_at([light(record) for record in window])
    first = window[0].seq if window else session.head_seq + 1
    incomplete = {seq for seq in tool_groups.incomplete_seqs(groups) if seq >= first}
    cut_off = {seq for group in groups if group.complete and group.seqs[0] < first for seq in group.seqs}
    left_out = incomplete | cut_off
    return Context(
        session=session,
        system_prompt=slots.get(SlotName.SYSTEM_PROMPT, UNWRITTEN),
        insight=slots.get(SlotName.INSIGHT, UNWRITTEN),
        records=[record for record in window if record.seq not in left_out],
        incomplete_records=len(incomplete),
        older_left_out=spans.seq_before(shown, first) is not None,
    )


def _newest(unit: UnitOfWork, session: Session, shown: Sequence[Span], budget: Budget) -> list[Record]:
    """Reads backwards, in steps, until the budget is used up; returns the records oldest first."""
    room = MAX_RECORDS if budget.max_records is None else min(budget.max_records, MAX_RECORDS)
    characters = spans.OPEN_END if budget.max_characters is None else budget.max_characters
    text_bytes = MAX_TEXT_BYTES
    largest = max(1, min(_LARGEST_STEP, _STEP_BYTES // max(1, session.max_record_bytes)))
    # Where nobody counts characters all will be read, so that small steps would only be more queries.
    step = largest if budget.max_characters is None else min(_FIRST_STEP, largest)
    newest: list[Record] = []
    before = session.head_seq + 1
    while room > 0:
        wanted = min(step, room)
        piece = unit.records.read(spans.clip(shown, 0, before - 1), wanted, descending=True)
        for record in piece:
            characters -= record.characters()
            text_bytes -= record.size_bytes
            if characters < 0 or text_bytes < 0:
                return newest[::-1]
            newest.append(record)
        if len(piece) < wanted:
            break
        room -= len(piece)
        before = piece[-1].seq
        step = min(step * 4, largest)
    return newest[::-1]
