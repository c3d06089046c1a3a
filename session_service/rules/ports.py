"""What the rules ask of a store. Sessions and slots are those of the call's space; origins know no space."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from ramet_server.domain.call import Call
from ramet_server.domain.idempotency import RequestLog
from ramet_server.domain.idempotency import Store as UnitStore
from ramet_server.domain.sharing import SharingStore
from session_service.rules.session_queries import Examined, SessionQuery
from session_service.rules.spans import Released, Span
from session_service.rules.values import (
    DeletedSession,
    LightRecord,
    Record,
    Role,
    Session,
    SessionSlots,
    Slot,
    SlotName,
    View,
)

T = TypeVar("T")


class SessionRows(Protocol):
    """Sessions one by one, with their tags."""

    def get(self, session_id: str) -> Session | None:
        """Returns the session with its tags."""
        ...

    def view(
        self, session_id: str, after_seq: int, before_seq: int, *, descending: bool, limit: int | None
    ) -> tuple[View, list[Span]] | None:
        """Returns where the history stands and the spans that meet the range, both of one moment.

        At most ``limit`` spans come, from the end that is asked for; always in ascending order, not clipped.
        """
        ...

    def lock(self, session_id: str) -> Session | None:
        """Returns the session without its tags; every other writer waits until this unit ends."""
        ...

    def tags(self, session_id: str) -> tuple[str, ...]:
        """Returns the session's tags, sorted."""
        ...

    def insert(self, session: Session) -> None:
        """Stores a new session with its tags; raises SessionExists where its id is taken."""
        ...

    def save(self, before: Session, after: Session) -> None:
        """Stores what differs of a locked session, tags included."""
        ...


class Sessions(SessionRows, Protocol):
    """Rows of sessions and their tags."""

    def get_many(self, session_ids: Collection[str], *, longest_metadata: int | None = None) -> Mapping[str, Session]:
        """Returns those that exist, with their tags; those with longer metadata_json are left out."""
        ...

    def metadata_size(self, session_ids: Collection[str]) -> int:
        """Returns the size of all their metadata_json together, in characters or bytes."""
        ...

    def share(self, session_id: str) -> Session | None:
        """Returns the session without its tags; nobody can write it until this unit ends."""
        ...

    def delete(self, session: Session) -> None:
        """Removes the row and its tags."""
        ...

    def stands(self, origins: Collection[str]) -> Mapping[str, tuple[int, int]]:
        """Returns head and floor of the sessions, of any space, that began as one of these and still are."""
        ...

    def note_deleted(self, session_id: str, now: datetime) -> None:
        """Notes for the sweep that the session was deleted; a later time replaces an earlier one."""
        ...

    def deleted(self, limit: int) -> list[DeletedSession]:
        """Returns notes of all spaces, oldest first."""
        ...

    def forget_deleted(self, note: DeletedSession) -> None:
        """Removes a note, unless the session was deleted again since."""
        ...

    def examine(self, query: SessionQuery) -> Examined:
        """Looks at a bounded stretch of the query's index; see ``SessionQuery``."""
        ...


class RecordRows(Protocol):
    """Records under their origins. Spans that are handed in have no open ends."""

    def insert(self, origin: str, records: Sequence[Record]) -> None:
        """Stores new records."""
        ...

    def read(
        self, spans: Sequence[Span], limit: int, *, descending: bool = False, roles: Collection[Role] = ()
    ) -> list[Record]:
        """Returns the first records that the spans show, of any of the roles (none given: of all)."""
        ...

    def sizes(
        self, spans: Sequence[Span], limit: int, *, descending: bool = False, roles: Collection[Role] = ()
    ) -> list[tuple[int, int]]:
        """Returns seq and size of what ``read`` would return."""
        ...

    def light(self, spans: Sequence[Span], limit: int, *, descending: bool = False) -> list[LightRecord]:
        """Returns what tells groups apart of what ``read`` would return."""
        ...

    def skip(self, spans: Sequence[Span], offset: int, *, descending: bool, roles: Collection[Role]) -> int | None:
        """Returns the seq of the record of these roles that ``offset`` others stand before; None beyond the last."""
        ...

    def count(self, spans: Sequence[Span], roles: Collection[Role]) -> int:
        """Returns how many records of these roles the spans show (none given: of all)."""
        ...


class Records(RecordRows, Protocol):
    """All that is asked of records."""

    def erased(self, spans: Sequence[Span]) -> set[int]:
        """Returns the seqs of those that were erased."""
        ...

    def erase(self, origin: str, record: Record) -> None:
        """Stores what is left of an erased record."""
        ...

    def delete(self, spans: Sequence[Span]) -> None:
        """Removes the rows of these ranges."""
        ...


class SpanRows(Protocol):
    """The spans that each session incarnation (the owner) shows, and those that some session dropped."""

    def of(self, owner: str) -> list[Span]:
        """Returns the owner's spans in order, the open one last."""
        ...

    def add(self, owner: str, spans: Iterable[Span]) -> None:
        """Stores spans of the owner."""
        ...

    def replace(self, owner: str, before: Sequence[Span], after: Sequence[Span]) -> None:
        """Stores what differs."""
        ...

    def release(self, released: Sequence[Released], now: datetime) -> None:
        """Notes ranges that sessions dropped. What one session drops never overlaps, so no note meets another."""
        ...


class Spans(SpanRows, Protocol):
    """All that is asked of spans."""

    def delete(self, owner: str) -> None:
        """Removes all spans of the owner."""
        ...

    def covers(self, spans: Sequence[Span]) -> Mapping[str, Sequence[tuple[int, int]]]:
        """Returns, by origin, the ranges (first, last) that sessions show and that meet one of these."""
        ...

    def released(self, limit: int) -> list[Released]:
        """Returns ranges that wait for the sweep, oldest first."""
        ...

    def take_released(self, released: Sequence[Released]) -> list[Released]:
        """Removes notes; returns those that were still there, which nobody else will take."""
        ...


class MarkRows(Protocol):
    """Records that a session shows of groups that can never be completed there, so that its forks leave them out."""

    def add(self, owner: str, seqs: Iterable[int]) -> None:
        """Marks records that are not marked yet."""
        ...

    def remove(self, owner: str, first_seq: int, last_seq: int) -> None:
        """Unmarks a range."""
        ...


class Marks(MarkRows, Protocol):
    """All that is asked of marks."""

    def of(self, owner: str, first_seq: int, last_seq: int) -> list[int]:
        """Returns the marked seqs of a range, ascending."""
        ...


class SlotRows(Protocol):
    """Context slots, session by session."""

    def read(self, session_id: str, names: Collection[SlotName]) -> Mapping[SlotName, Slot] | None:
        """Returns the slots, unwritten ones too; None where there is no session."""
        ...

    def version(self, session_id: str, name: SlotName) -> int:
        """Returns the version of one slot of a session that exists."""
        ...

    def write(self, session_id: str, name: SlotName, slot: Slot) -> None:
        """Stores a slot of a locked session; its version says whether it is the first."""
        ...

    def consume(self, session_id: str, name: SlotName, version: int, now: datetime) -> bool:
        """Unsets a slot that is set and has this version; tells whether it did."""
        ...


class Slots(SlotRows, Protocol):
    """All that is asked of slots."""

    def sizes(self, session_ids: Sequence[str], names: Collection[SlotName]) -> Mapping[str, int]:
        """Returns the size of all content of each session that exists, in characters or bytes."""
        ...

    def read_many(self, session_ids: Collection[str], names: Collection[SlotName]) -> Mapping[str, SessionSlots]:
        """Returns the slots of those sessions that exist."""
        ...

    def read_light(self, session_ids: Collection[str], name: SlotName, longest: int) -> Mapping[str, Slot]:
        """Returns one slot of each session that exists and whose slot is no longer than that."""
        ...

    def delete(self, session_id: str) -> None:
        """Removes all slots of a session."""
        ...


class ContentUnit(Protocol):
    """What it takes to read and write the content of single sessions: a part of every unit of work.

    A transaction answers its steps over such a unit that keeps all writes to itself.
    """

    @property
    def sessions(self) -> SessionRows:
        """The sessions."""
        ...

    @property
    def records(self) -> RecordRows:
        """The records."""
        ...

    @property
    def spans(self) -> SpanRows:
        """The spans."""
        ...

    @property
    def marks(self) -> MarkRows:
        """The marks."""
        ...

    @property
    def slots(self) -> SlotRows:
        """The slots."""
        ...


class UnitOfWork(Protocol):
    """One transaction over the sessions of one space."""

    @property
    def requests(self) -> RequestLog:
        """The log of requests that took effect."""
        ...

    @property
    def sessions(self) -> Sessions:
        """The sessions."""
        ...

    @property
    def records(self) -> Records:
        """The records."""
        ...

    @property
    def spans(self) -> Spans:
        """The spans."""
        ...

    @property
    def marks(self) -> Marks:
        """The marks."""
        ...

    @property
    def slots(self) -> Slots:
        """The slots."""
        ...


class Store(UnitStore[UnitOfWork], SharingStore[UnitOfWork], Protocol):
    """Opens units of work in the space of a call."""

    def snapshot(self, call: Call, fn: Callable[[UnitOfWork], T]) -> T:
        """Runs ``fn``, which only reads, over one consistent state; ``read`` sees one state per query."""
        ...
