"""What the answers of a transaction rest on, and whether it still holds.

Every answer counts as read, that of a write too: it tells where the session stands. So a transaction
commits only if all that it was told would be told again.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime

from ramet_server.domain.errors import SessionExists, TransactionConflict
from session_service.rules import spans
from session_service.rules.metadata import Metadata
from session_service.rules.ports import UnitOfWork
from session_service.rules.records import RecordPage
from session_service.rules.sessions import new_session
from session_service.rules.transaction_steps import Step
from session_service.rules.values import Session, SlotName


@dataclass(slots=True)
class _Seen:
    origin: str | None
    """None: there was no such session."""
    facts: dict[str, object] = field(default_factory=dict)
    slots: dict[SlotName, int] = field(default_factory=dict)
    listed: list[tuple[int, int]] = field(default_factory=list)
    """First and last seq of each part of the committed history that was told."""
    erased: set[int] = field(default_factory=set)
    """Records in it that were told as erased."""


class Seen:
    """What a transaction has seen of each session."""

    def __init__(self) -> None:
        self._sessions: dict[str, _Seen] = {}

    def look(self, unit: UnitOfWork, row: Session | None, step: Step) -> None:
        """Notes what a step's answer will rest on, of a session's row as committed.

        Raises TransactionConflict where it has moved since an earlier step: then no answer would fit the others.
        """
        seen = self._sessions.get(step.session_id)
        if seen is None:
            seen = self._sessions[step.session_id] = _Seen(None if row is None else row.origin)
        _compare(step.session_id, seen, row)
        if row is None:
            return
        for name in step.tells:
            seen.facts.setdefault(name, getattr(row, name))
        for slot in step.slots:
            version = unit.slots.version(step.session_id, slot)
            if seen.slots.setdefault(slot, version) != version:
                raise _conflict(step.session_id, slot.value, seen.slots[slot], version)

    def note_page(self, row: Session, page: RecordPage) -> None:
        """Notes the part of a page that is committed history."""
        seqs = [record.seq for record in page.records if record.seq <= row.head_seq]
        if seqs:
            seen = self._sessions[row.session_id]
            seen.listed.append((min(seqs), max(seqs)))
            seen.erased.update(record.seq for record in page.records if record.erased_at is not None)

    def hold(self, unit: UnitOfWork, written: Collection[str], now: datetime) -> None:
        """Locks all that was seen until the unit ends; raises TransactionConflict where some of it has moved.

        In the order of ids, so that two commits never wait for each other crosswise. What was only read is locked
        too: else two transactions could each write what the other has read.
        """
        for session_id in sorted(self._sessions):
            seen = self._sessions[session_id]
            if seen.origin is None:
                _hold_absent(unit, session_id, now)
                continue
            lock = unit.sessions.lock if session_id in written else unit.sessions.share
            self._check(unit, session_id, seen, lock)

    def check(self, unit: UnitOfWork) -> None:
        """Raises TransactionConflict where some of what was seen has moved; for a unit that sees one state."""
        for session_id, seen in self._sessions.items():
            self._check(unit, session_id, seen, unit.sessions.get)

    def _check(self, unit: UnitOfWork, session_id: str, seen: _Seen, find: Callable[[str], Session | None]) -> None:
        row = find(session_id)
        _compare(session_id, seen, row)
        if row is None:
            return
        for name, version in seen.slots.items():
            current = unit.slots.version(session_id, name)
            if current != version:
                raise _conflict(session_id, name.value, version, current)
        # Neither head nor floor has moved, so the history is made of the same records; they may be empty now.
        history = unit.spans.of(row.origin) if seen.listed else []
        listed = [span for first, last in _merged(seen.listed) for span in spans.clip(history, first, last)]
        for seq in sorted(unit.records.erased(listed) - seen.erased)[:1]:
            raise _conflict(session_id, "record", seq, "erased")


def _compare(session_id: str, seen: _Seen, row: Session | None) -> None:
    origin = None if row is None else row.origin
    if origin != seen.origin:
        how = "created" if seen.origin is None else "deleted" if origin is None else "recreated"
        raise _conflict(session_id, "session", "absent" if seen.origin is None else "present", how)
    for name, value in seen.facts.items():
        current = getattr(row, name)
        if current != value:
            raise _conflict(session_id, name, value, current)


def _hold_absent(unit: UnitOfWork, session_id: str, now: datetime) -> None:
    # A lock on a row that is not there: its key is taken, and free again only when this unit has ended.
    stand_in = new_session(session_id, Metadata(), now)
    try:
        unit.sessions.insert(stand_in)
    except SessionExists:
        raise _conflict(session_id, "session", "absent", "created") from None
    unit.sessions.delete(stand_in)


def _conflict(session_id: str, moved: str, read: object, current: object) -> TransactionConflict:
    return TransactionConflict(
        f"What the transaction read of a session has moved: {moved}.",
        details={"session_id": session_id, "moved": moved, "read": str(read), "current": str(current)},
    )


def _merged(ranges: Collection[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns the ranges in order, without overlap."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return merged
