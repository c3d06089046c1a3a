"""What carrying sessions out and in asks of a store, beside the usual."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from ramet_server.domain.call import Call
from session_service.rules.ports import UnitOfWork
from session_service.rules.values import Record, Slot, SlotName

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the order of sessions by their creation."""

    created_at: datetime
    session_id: str


@dataclass(frozen=True, slots=True)
class Stale:
    """A session that an import began to bring, and has not gone on with for long."""

    space_id: str
    session_id: str


@dataclass(frozen=True, slots=True)
class Note:
    """That a session is arriving."""

    origin: str
    heard_at: datetime


class Archives(Protocol):
    """Sessions by their creation and by origin, and those that are arriving; of one space."""

    def page(self, after: Place | None, limit: int) -> list[Place]:
        """Returns the next sessions in the order of their creation, then of their ids."""
        ...

    def owners(self, origins: Collection[str]) -> Mapping[str, str]:
        """Returns, by origin, the ids of the sessions that it belongs to now."""
        ...

    def lock_arriving(self, session_id: str) -> Note | None:
        """Returns the note of an arriving session; nobody else goes on with it until this unit ends."""
        ...

    def add_arriving(self, session_id: str, origin: str, now: datetime) -> None:
        """Notes that a session is arriving; raises WriteConflict where another import was faster."""
        ...

    def hear_of(self, session_id: str, now: datetime) -> None:
        """Notes that the import of a session goes on."""
        ...

    def remove_arriving(self, session_id: str) -> None:
        """Removes the note of an arriving session."""
        ...

    def stale(self, before: datetime, limit: int, space: str | None = None) -> list[Stale]:
        """Returns arriving sessions, of one or all spaces, that nothing came for since a moment, oldest first."""
        ...

    def wait_for_sweeps(self, origins: Collection[str]) -> None:
        """Returns once no open transaction is erasing released records of these origins."""
        ...

    def stored(self, origin: str, seqs: Collection[int]) -> Mapping[int, Record]:
        """Returns the records that an origin has of these."""
        ...

    def last_seq(self, origin: str) -> int:
        """Returns the greatest seq of the records of an origin, 0 where there is none."""
        ...

    def add_slot(self, session_id: str, name: SlotName, slot: Slot) -> None:
        """Stores a slot of a new session, whatever its version."""
        ...

    def unnote_deleted(self, session_id: str) -> None:
        """Removes the note that a session of this id was deleted, since it is back."""
        ...


class ArchiveUnit(UnitOfWork, Protocol):
    """One transaction over the sessions of one space."""

    @property
    def archives(self) -> Archives:
        """What archives ask for."""
        ...


class ArchiveStore(Protocol):
    """Opens units of work in the space of a call."""

    def read(self, call: Call, fn: Callable[[ArchiveUnit], T]) -> T:
        """Runs ``fn`` over one committed state."""
        ...

    def write(self, call: Call, fn: Callable[[ArchiveUnit], T]) -> T:
        """Runs ``fn`` and commits; ``fn`` may run more than once, and only its last run counts."""
        ...
