"""Sessions that nobody writes to for long: which they are, and taking one within a transaction of the sweep.

A session is idle while its last append, change of metadata and write of a slot all lie before a moment. Who
deletes one looks again under its lock, so that one which is written to meanwhile stays.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from session_service.rules import spans
from session_service.rules.deletion import delete_in
from session_service.rules.ports import UnitOfWork
from session_service.rules.spans import Span


@dataclass(frozen=True, slots=True)
class Idle:
    """A session that may be too old."""

    session_id: str
    origin: str
    last_active_at: datetime


@dataclass(frozen=True, slots=True)
class Shown:
    """Records of one origin that a session shows."""

    owner: str
    """The origin of that session."""
    span: Span


class IdleSessions(Protocol):
    """Sessions of one space, as their ages are looked at."""

    def space_after(self, space: str) -> str | None:
        """Returns the next space, by name, that has sessions."""
        ...

    def idle(self, before: datetime, after: Idle | None, limit: int) -> list[Idle]:
        """Returns the next idle sessions by their last activity."""
        ...

    def is_idle(self, session_id: str, before: datetime) -> bool:
        """Tells whether a session that exists is idle."""
        ...

    def origins_of(self, owners: Collection[str]) -> set[str]:
        """Returns the origins whose records these sessions show."""
        ...

    def shown(self, origin: str) -> Sequence[Shown]:
        """Returns who shows records of an origin, none beyond the last one that is there."""
        ...

    def count(self, found: Sequence[Span]) -> int:
        """Counts the records of these ranges."""
        ...


def take_idle(unit: UnitOfWork, ages: IdleSessions, session_id: str, before: datetime, now: datetime) -> bool:
    """Deletes a session within a unit if it is still there and still idle; tells whether it did."""
    session = unit.sessions.lock(session_id)
    if session is None or not ages.is_idle(session_id, before):
        return False
    delete_in(unit, session, now)
    return True


def count_freed(ages: IdleSessions, going: Mapping[str, str]) -> int:
    """Counts the records that nobody shows any more once sessions, origins by id, are gone."""
    owners = set(going.values())
    freed = 0
    for origin in sorted(ages.origins_of(owners)):
        dropped: list[Span] = []
        kept: list[tuple[int, int]] = []
        for each in ages.shown(origin):
            if each.owner in owners:
                dropped.append(each.span)
            else:
                kept.append((each.span.first_seq, each.span.last_seq))
        freed += ages.count([part for whole in _united(dropped) for part in spans.uncovered(whole, kept)])
    return freed


def _united(found: Sequence[Span]) -> list[Span]:
    """Returns the same seqs of one origin, each once."""
    united: list[Span] = []
    for span in sorted(found, key=lambda each: each.first_seq):
        if united and span.first_seq <= united[-1].last_seq:
            last = max(united[-1].last_seq, span.last_seq)
            united[-1] = Span(span.origin, united[-1].first_seq, last)
        else:
            united.append(span)
    return united
