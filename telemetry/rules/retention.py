"""What of telemetry goes: by age, with its conversation, and what ingest no longer needs. Called by the sweep alone."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.limits import Limits
from ramet_server.domain.retention import OnDelete

_AT_ONCE = 100
"""Diagnoses that one transaction deletes."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Doomed:
    """What is to go of one space, counted."""

    space_id: str
    diagnoses: int
    steps: int
    tools: int


@dataclass(frozen=True, slots=True)
class Conversation:
    """Which diagnoses of a deleted conversation are meant: those that began before it was deleted."""

    conversation_id: str
    deleted_at: datetime


class Remains(Protocol):
    """Rows that may have to go; all but the last method are about one space."""

    def expired(self, before: datetime, limit: int) -> Sequence[str]:
        """Returns diagnoses whose last change lies before a moment, oldest first."""
        ...

    def of_conversation(self, conversation: Conversation, limit: int) -> Sequence[str]:
        """Returns diagnoses of a conversation."""
        ...

    def delete_expired(self, session_ids: Sequence[str], before: datetime) -> int:
        """Deletes those that are still as old, with all that belongs to them; returns how many."""
        ...

    def delete_of(self, session_ids: Sequence[str], conversation: Conversation) -> int:
        """Deletes those that still belong to a conversation, with all that belongs to them; returns how many."""
        ...

    def begun(self, through: datetime, limit: int) -> Sequence[str]:
        """Returns diagnoses that were made no later than a moment, oldest first."""
        ...

    def delete_begun(self, session_ids: Sequence[str], through: datetime) -> int:
        """Deletes those that were made no later than a moment, with all that belongs to them; returns how many."""
        ...

    def detach(self, session_ids: Sequence[str], conversation: Conversation) -> int:
        """Lets those name no conversation that name this one; returns how many."""
        ...

    def count_expired(self, before: datetime) -> tuple[int, int, int]:
        """Counts diagnoses that ``expired`` would return, their steps and their tool calls."""
        ...

    def count_of(self, conversation: Conversation) -> int:
        """Counts diagnoses that ``of_conversation`` would return."""
        ...

    def space_after(self, space: str) -> str | None:
        """Returns the next space, by name, that has diagnoses."""
        ...


class Notes(Protocol):
    """What ingest remembers for a time only."""

    def forget_events(self, call: Call, limit: int) -> int:
        """Forgets the ids of some ``limit`` events whose time is over; returns how many."""
        ...

    def forget_producers(self, call: Call, limit: int) -> int:
        """Forgets some ``limit`` producers that were not heard of for long; returns how many."""
        ...


class RetentionStore(Protocol):
    """Opens units of work in the space of a call."""

    def read(self, call: Call, fn: Callable[[Remains], T]) -> T:
        """Runs ``fn`` over committed rows."""
        ...

    def write(self, call: Call, fn: Callable[[Remains], T]) -> T:
        """Runs ``fn`` and commits; ``fn`` may run more than once."""
        ...


class RetentionRules:
    """What the sweep of all spaces asks for; every step may be repeated, by many servers at once."""

    def __init__(self, store: RetentionStore, notes: Notes, limits: Limits, clock: Clock) -> None:
        self._store = store
        self._notes = notes
        self._limits = limits
        self._clock = clock

    def expire(self, call: Call) -> tuple[int, bool]:
        """Deletes some diagnoses that are too old; returns how many, and whether there may be more."""
        deleted = 0
        for within, before in self._expiring(call):
            ids = self._expired(within, before)
            if ids:
                deleted += self._delete_expired(within, ids, before)
            if len(ids) >= _AT_ONCE:
                return deleted, True
        return deleted, False

    def count_expired(self, call: Call) -> Sequence[Doomed]:
        """Counts what ``expire`` would delete in all, by space."""
        found = []
        for within, before in self._expiring(call):
            counts = self._count_expired(within, before)
            if counts[0]:
                found.append(Doomed(within.space, *counts))
        return found

    def leave(self, call: Call, conversation: Conversation) -> tuple[int, bool]:
        """Detaches or deletes some diagnoses of a deleted conversation of the call's space, as the policy says.

        Returns how many, and whether there may be more.
        """
        policy = self._limits.retention.on_delete
        if policy is OnDelete.KEEP:
            return 0, False

        ids = self._store.read(call, lambda unit: unit.of_conversation(conversation, _AT_ONCE))
        if not ids:
            return 0, False

        def work(unit: Remains) -> int:
            if policy is OnDelete.DETACH:
                return unit.detach(ids, conversation)
            return unit.delete_of(ids, conversation)

        return self._store.write(call, work), len(ids) >= _AT_ONCE

    def count_leaving(self, call: Call, conversation: Conversation) -> int:
        """Counts what ``leave`` would detach or delete in all."""
        if self._limits.retention.on_delete is OnDelete.KEEP:
            return 0
        return self._store.read(call, lambda unit: unit.count_of(conversation))

    def clear(self, call: Call, through: datetime) -> tuple[int, bool]:
        """Deletes some diagnoses of the call's space that were made no later than a moment.

        Returns how many, and whether there may be more.
        """
        ids = self._store.read(call, lambda unit: unit.begun(through, _AT_ONCE))
        deleted = self._store.write(call, lambda unit: unit.delete_begun(ids, through)) if ids else 0
        return deleted, len(ids) >= _AT_ONCE

    def forget_events(self, call: Call, limit: int) -> int:
        """Forgets the ids of some ``limit`` events whose time is over; returns how many."""
        return self._notes.forget_events(call, limit)

    def forget_producers(self, call: Call, limit: int) -> int:
        """Forgets some ``limit`` producers that were not heard of for long; returns how many."""
        return self._notes.forget_producers(call, limit)

    def _expired(self, call: Call, before: datetime) -> Sequence[str]:
        return self._store.read(call, lambda unit: unit.expired(before, _AT_ONCE))

    def _count_expired(self, call: Call, before: datetime) -> tuple[int, int, int]:
        return self._store.read(call, lambda unit: unit.count_expired(before))

    def _delete_expired(self, call: Call, ids: Sequence[str], before: datetime) -> int:
        return self._store.write(call, lambda unit: unit.delete_expired(ids, before))

    def _expiring(self, call: Call) -> Iterator[tuple[Call, datetime]]:
        """Yields each space in which telemetry goes by age, and the moment before which it does."""
        retention = self._limits.retention
        if not retention.expires:
            return
        now = self._clock.now()
        space = self._next_space(call, "")
        while space is not None:
            days = retention.days_in(space)
            if days:
                yield replace(call, space=space), now - timedelta(days=days)
            space = self._next_space(call, space)

    def _next_space(self, call: Call, space: str) -> str | None:
        return self._store.read(call, lambda unit: unit.space_after(space))
