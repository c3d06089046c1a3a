"""The model of one open transaction: what it was told, and what it is to write."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from tests.model.conversation import Rec, Session

VERSION, HEAD, FLOOR, ARCHIVED = "version", "head", "floor", "archived"
PLACE = (HEAD, FLOOR)
WHOLE = (*PLACE, VERSION)
"""What is told of a session, by the names of the model's fields."""

Write = Callable[[Session], object]
"""Changes a session as the write was answered."""


@dataclass
class Seen:
    """What a transaction was told of one session, as it was committed then."""

    session: Session | None
    """The incarnation; None: there was none."""
    facts: dict[str, object] = field(default_factory=dict)
    slots: dict[str, int] = field(default_factory=dict)
    records: dict[int, bool] = field(default_factory=dict)
    """Whether each listed record was told as erased when it was first listed, by its seq."""

    def moved(self, now: Session | None) -> bool:
        """Tells whether an answer would not be given again."""
        if self.session is None or now is not self.session:
            return now is not self.session
        listed = {seq: now.record(seq) for seq in self.records}
        return (
            any(getattr(now, name) != value for name, value in self.facts.items())
            or any(now.slots[name].version != version for name, version in self.slots.items())
            or any(held is None or held.erased != self.records[seq] for seq, held in listed.items())
        )


@dataclass
class Open:
    """An open transaction over the sessions of the model."""

    committed: dict[str, Session]
    """What everybody sees."""
    seen: dict[str, Seen] = field(default_factory=dict)
    writes: list[tuple[str, Write]] = field(default_factory=list)
    made: dict[str, Session] = field(default_factory=dict)
    """Sessions that it creates, as they begin."""

    def moved(self, session_id: str) -> bool:
        """Tells whether something that was told of a session has moved."""
        return session_id in self.seen and self.seen[session_id].moved(self.committed.get(session_id))

    @property
    def stale(self) -> bool:
        """Whether its commit must be refused."""
        return any(self.moved(session_id) for session_id in self.seen)

    def view(self, session_id: str) -> Session | None:
        """Returns a session with its own writes; None where there is none."""
        base = self.committed.get(session_id) or self.made.get(session_id)
        if base is None:
            return None
        view = _copy(base)
        self._write(session_id, view)
        return view

    def look(self, session_id: str, facts: Iterable[str] = (), slots: Iterable[str] = ()) -> None:
        """Notes what an answer rested on."""
        now = self.committed.get(session_id)
        seen = self.seen.setdefault(session_id, Seen(now))
        if now is not None:
            for name in facts:
                seen.facts.setdefault(name, getattr(now, name))
            for name in slots:
                seen.slots.setdefault(name, now.slots[name].version)

    def listed(self, session_id: str, records: Iterable[Rec]) -> None:
        """Notes which records of what is committed were listed."""
        now = self.committed.get(session_id)
        for record in records:
            if now is not None and record in now.records:
                self.seen[session_id].records.setdefault(record.seq, record.erased)

    def apply(self) -> None:
        """Makes the writes visible to everybody."""
        for session_id in dict.fromkeys(session_id for session_id, _ in self.writes):
            if session_id not in self.committed:
                self.committed[session_id] = _copy(self.made[session_id])
            self._write(session_id, self.committed[session_id])

    def _write(self, session_id: str, session: Session) -> None:
        for written, write in self.writes:
            if written == session_id:
                write(session)


def _copy(session: Session) -> Session:
    slots = {name: replace(slot) for name, slot in session.slots.items()}
    return replace(session, tags=list(session.tags), records=list(session.records), slots=slots)
