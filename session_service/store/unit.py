"""Units of work over the database."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeVar

from sqlalchemy import Connection

from ramet_server.database.database import Database
from ramet_server.database.request_log import SqlRequestLog
from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.errors import RametError
from ramet_server.domain.sharing import Alone, Member
from session_service.rules.ports import UnitOfWork
from session_service.store.marks import SqlMarks
from session_service.store.records import SqlRecords
from session_service.store.sessions import SqlSessions
from session_service.store.shared import SharedUnits
from session_service.store.slots import SqlSlots
from session_service.store.spans import SqlSpans

SERVICE = "session"
"""Under this name the service logs its requests."""

T = TypeVar("T")


class SqlUnit:
    """One transaction, or one series of reads, over the sessions of one space."""

    def __init__(self, connection: Connection, space: str, clock: Clock, request_id_hours: int) -> None:
        self._connection = connection
        self._space = space
        self._clock = clock
        self._request_id_hours = request_id_hours

    @cached_property
    def requests(self) -> SqlRequestLog:
        """The log of requests that took effect."""
        return SqlRequestLog(self._connection, self._space, SERVICE, self._clock, self._request_id_hours)

    @cached_property
    def sessions(self) -> SqlSessions:
        """The sessions."""
        return SqlSessions(self._connection, self._space)

    @cached_property
    def records(self) -> SqlRecords:
        """The records."""
        return SqlRecords(self._connection)

    @cached_property
    def spans(self) -> SqlSpans:
        """The spans."""
        return SqlSpans(self._connection)

    @cached_property
    def marks(self) -> SqlMarks:
        """The marks."""
        return SqlMarks(self._connection)

    @cached_property
    def slots(self) -> SqlSlots:
        """The slots."""
        return SqlSlots(self._connection, self._space)


class SqlStore:
    """Opens units of work on a database; implements ``rules.ports.Store``."""

    def __init__(self, database: Database, clock: Clock, request_id_hours: int) -> None:
        self._database = database
        self._clock = clock
        self._request_id_hours = request_id_hours
        self._shared = SharedUnits(database, clock, SERVICE)

    def read(self, call: Call, fn: Callable[[UnitOfWork], T]) -> T:
        """Runs ``fn`` over committed rows; each query sees one state."""
        return self._database.read(call, lambda connection: fn(self._unit(connection, call)))

    def snapshot(self, call: Call, fn: Callable[[UnitOfWork], T]) -> T:
        """Runs ``fn``, which only reads, over one consistent state."""
        return self._database.read(call, lambda connection: fn(self._unit(connection, call)), snapshot=True)

    def write(self, call: Call, fn: Callable[[UnitOfWork], T]) -> T:
        """Runs ``fn`` and commits; ``fn`` may run more than once, and only its last run counts."""
        return self._database.write(call, lambda connection: fn(self._unit(connection, call)))

    def write_together(self, members: Sequence[Member[UnitOfWork, T]]) -> list[T | RametError | Alone]:
        """Runs members in one transaction; see ``ramet_server.domain.sharing``."""
        return self._shared.write_together(members)

    def _unit(self, connection: Connection, call: Call) -> SqlUnit:
        return SqlUnit(connection, call.space, self._clock, self._request_id_hours)
