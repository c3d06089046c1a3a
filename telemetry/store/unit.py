"""Units of work of ingest over the database."""

from collections.abc import Callable
from functools import cached_property
from typing import TypeVar

from sqlalchemy import Connection

from ramet_server.database.database import Database
from ramet_server.database.request_log import SqlRequestLog
from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from telemetry.rules.ports import UnitOfWork
from telemetry.store.ledger import SqlLedger, SqlProducers
from telemetry.store.merged_diagnoses import SqlDiagnoses, SqlWords
from telemetry.store.merged_parts import SqlSteps, SqlToolCalls

SERVICE = "telemetry"
"""Under this name the service logs its requests."""

T = TypeVar("T")


class SqlUnit:
    """One transaction of ingest in one space; implements ``rules.ports.UnitOfWork``."""

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
    def ledger(self) -> SqlLedger:
        """The events that were taken."""
        return SqlLedger(self._connection, self._space)

    @cached_property
    def producers(self) -> SqlProducers:
        """The producers."""
        return SqlProducers(self._connection, self._space)

    @cached_property
    def diagnoses(self) -> SqlDiagnoses:
        """The diagnoses."""
        return SqlDiagnoses(self._connection, self._space)

    @cached_property
    def steps(self) -> SqlSteps:
        """The steps."""
        return SqlSteps(self._connection, self._space)

    @cached_property
    def tool_calls(self) -> SqlToolCalls:
        """The tool calls."""
        return SqlToolCalls(self._connection, self._space)

    @cached_property
    def words(self) -> SqlWords:
        """The feedback."""
        return SqlWords(self._connection, self._space)


class SqlStore:
    """Opens units of work on a database; implements ``rules.ports.Store``."""

    def __init__(self, database: Database, clock: Clock, request_id_hours: int) -> None:
        self._database = database
        self._clock = clock
        self._request_id_hours = request_id_hours

    def read(self, call: Call, fn: Callable[[UnitOfWork], T]) -> T:
        """Runs ``fn`` over committed rows; each query sees one state."""
        return self._database.read(call, lambda connection: fn(self._unit(connection, call)))

    def write(self, call: Call, fn: Callable[[UnitOfWork], T]) -> T:
        """Runs ``fn`` and commits; ``fn`` may run more than once, and only its last run counts."""
        return self._database.write(call, lambda connection: fn(self._unit(connection, call)))

    def _unit(self, connection: Connection, call: Call) -> SqlUnit:
        return SqlUnit(connection, call.space, self._clock, self._request_id_hours)
