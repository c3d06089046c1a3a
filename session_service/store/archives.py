"""The SQL of archives: sessions by creation and origin, and those that are arriving."""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Select, and_, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from ramet_server.database.database import Database
from ramet_server.database.faults import is_duplicate
from ramet_server.database.tables.session import (
    arriving_session,
    context_slot,
    deleted_session,
    record,
    released_span,
    session,
)
from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.errors import WriteConflict
from session_service.rules.archiving.ports import ArchiveUnit, Note, Place, Stale
from session_service.rules.spans import Span, count, joined
from session_service.rules.values import Record, Slot, SlotName
from session_service.store.records import SqlRecords
from session_service.store.unit import SqlUnit

T = TypeVar("T")

_IN_LIMIT = 500

_A, _S = arriving_session.c, session.c


class SqlArchives:
    """Sessions of one space as archives need them; implements ``rules.archiving.ports.Archives``."""

    def __init__(self, connection: Connection, space: str) -> None:
        self._connection = connection
        self._space = space

    def page(self, after: Place | None, limit: int) -> list[Place]:
        """Returns the next sessions in the order of their creation, then of their ids."""
        wanted = select(_S.created_at, _S.session_id).where(_S.space_id == self._space)
        if after is None:
            return self._places(wanted.order_by(_S.created_at, _S.session_id).limit(limit))
        # One condition over both columns would not drive on the index; each of these does.
        found: list[Place] = []
        for part in (
            and_(_S.created_at == after.created_at, _S.session_id > after.session_id),
            _S.created_at > after.created_at,
        ):
            if len(found) < limit:
                some = wanted.where(part).order_by(_S.created_at, _S.session_id).limit(limit - len(found))
                found += self._places(some)
        return found

    def owners(self, origins: Collection[str]) -> Mapping[str, str]:
        """Returns, by origin, the ids of the sessions that it belongs to now."""
        found: dict[str, str] = {}
        ordered = sorted(origins)
        for start in range(0, len(ordered), _IN_LIMIT):
            wanted = select(_S.origin, _S.session_id).where(
                _S.space_id == self._space, _S.origin.in_(ordered[start : start + _IN_LIMIT])
            )
            found.update((row.origin, row.session_id) for row in self._connection.execute(wanted))
        return found

    def lock_arriving(self, session_id: str) -> Note | None:
        """Returns the note of an arriving session; nobody else goes on with it until this unit ends."""
        wanted = select(_A.origin, _A.heard_at).where(self._here(session_id)).with_for_update()
        row = self._connection.execute(wanted).one_or_none()
        return None if row is None else Note(*row)

    def add_arriving(self, session_id: str, origin: str, now: datetime) -> None:
        """Notes that a session is arriving."""
        row = {"space_id": self._space, "session_id": session_id, "origin": origin, "heard_at": now}
        try:
            self._connection.execute(insert(arriving_session), row)
        except IntegrityError as error:
            if not is_duplicate(error):
                raise
            raise WriteConflict("Another import is bringing this session.") from error

    def hear_of(self, session_id: str, now: datetime) -> None:
        """Notes that the import of a session goes on."""
        self._connection.execute(update(arriving_session).where(self._here(session_id)).values(heard_at=now))

    def remove_arriving(self, session_id: str) -> None:
        """Removes the note of an arriving session."""
        self._connection.execute(delete(arriving_session).where(self._here(session_id)))

    def stale(self, before: datetime, limit: int, space: str | None = None) -> list[Stale]:
        """Returns arriving sessions, of one or all spaces, that nothing came for since a moment, oldest first."""
        wanted = select(_A.space_id, _A.session_id).where(_A.heard_at < before).order_by(_A.heard_at).limit(limit)
        if space is not None:
            wanted = wanted.where(_A.space_id == space)
        return [Stale(*row) for row in self._connection.execute(wanted)]

    def wait_for_sweeps(self, origins: Collection[str]) -> None:
        """Returns once no open transaction is erasing released records of these origins."""
        # A sweep holds the notes that it took until its end; reading them for update waits for it.
        c = released_span.c
        ordered = sorted(origins)
        for start in range(0, len(ordered), _IN_LIMIT):
            some = c.origin.in_(ordered[start : start + _IN_LIMIT])
            self._connection.execute(select(c.owner_origin).where(some).with_for_update()).all()

    def stored(self, origin: str, seqs: Collection[int]) -> Mapping[int, Record]:
        """Returns the records that an origin has of these."""
        if not seqs:
            return {}
        runs = _runs(origin, seqs)
        return {each.seq: each for each in SqlRecords(self._connection).read(runs, count(runs))}

    def last_seq(self, origin: str) -> int:
        """Returns the greatest seq of the records of an origin, 0 where there is none."""
        wanted = select(func.max(record.c.seq)).where(record.c.origin == origin)
        return self._connection.execute(wanted).scalar_one() or 0

    def add_slot(self, session_id: str, name: SlotName, slot: Slot) -> None:
        """Stores a slot of a new session, whatever its version."""
        key = {"space_id": self._space, "session_id": session_id, "slot": name}
        values = {"content": slot.content, "version": slot.version, "updated_at": slot.updated_at}
        self._connection.execute(insert(context_slot), key | values)

    def unnote_deleted(self, session_id: str) -> None:
        """Removes the note that a session of this id was deleted, since it is back."""
        t = deleted_session.c
        self._connection.execute(delete(deleted_session).where(t.space_id == self._space, t.session_id == session_id))

    def _places(self, wanted: Select[Any]) -> list[Place]:
        return [Place(*row) for row in self._connection.execute(wanted)]

    def _here(self, session_id: str) -> ColumnElement[bool]:
        return and_(_A.space_id == self._space, _A.session_id == session_id)


def _runs(origin: str, seqs: Collection[int]) -> list[Span]:
    """Returns the seqs as ranges, so that nothing between them is read."""
    return joined(Span(origin, seq, seq) for seq in sorted(set(seqs)))


class SqlArchiveUnit(SqlUnit):
    """One transaction, or one series of reads, with what archives need; implements ``ArchiveUnit``."""

    @cached_property
    def archives(self) -> SqlArchives:
        """What archives ask for."""
        return SqlArchives(self._connection, self._space)


class SqlArchiveStore:
    """Opens units of work on a database; implements ``rules.archiving.ports.ArchiveStore``."""

    def __init__(self, database: Database, clock: Clock, request_id_hours: int) -> None:
        self._database = database
        self._clock = clock
        self._request_id_hours = request_id_hours

    def read(self, call: Call, fn: Callable[[ArchiveUnit], T]) -> T:
        """Runs ``fn`` over one committed state."""
        return self._database.read(call, lambda connection: fn(self.unit(connection, call.space)), snapshot=True)

    def write(self, call: Call, fn: Callable[[ArchiveUnit], T]) -> T:
        """Runs ``fn`` and commits; ``fn`` may run more than once, and only its last run counts."""
        return self._database.write(call, lambda connection: fn(self.unit(connection, call.space)))

    def unit(self, connection: Connection, space: str) -> SqlArchiveUnit:
        """Returns a unit over a connection that somebody else opened."""
        return SqlArchiveUnit(connection, space, self._clock, self._request_id_hours)
