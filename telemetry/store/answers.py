"""Series of reads over the database."""

from collections.abc import Callable
from functools import cached_property
from typing import TypeVar

from sqlalchemy import Connection

from ramet_server.database.database import Database
from ramet_server.domain.call import Call
from telemetry.rules.answer_ports import AnswersUnit
from telemetry.store.changes import SqlChanges
from telemetry.store.diagnoses import SqlDiagnoses
from telemetry.store.metrics import SqlMetrics
from telemetry.store.steps import SqlSteps
from telemetry.store.tools import SqlTools

T = TypeVar("T")


class SqlAnswersUnit:
    """A series of reads over one space; implements ``rules.answer_ports.AnswersUnit``."""

    def __init__(self, connection: Connection, space: str) -> None:
        self._connection = connection
        self._space = space

    @cached_property
    def diagnoses(self) -> SqlDiagnoses:
        """The diagnoses."""
        return SqlDiagnoses(self._connection, self._space)

    @cached_property
    def steps(self) -> SqlSteps:
        """The steps."""
        return SqlSteps(self._connection, self._space)

    @cached_property
    def tools(self) -> SqlTools:
        """The tool calls."""
        return SqlTools(self._connection, self._space)

    @cached_property
    def metrics(self) -> SqlMetrics:
        """The measures."""
        return SqlMetrics(self._connection, self._space)

    @cached_property
    def changes(self) -> SqlChanges:
        """What changed."""
        return SqlChanges(self._connection, self._space)


class SqlAnswersStore:
    """Opens series of reads; implements ``rules.answer_ports.AnswersStore``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, call: Call, fn: Callable[[AnswersUnit], T]) -> T:
        """Runs ``fn``; each query sees one state."""
        return self._database.read(call, lambda connection: fn(SqlAnswersUnit(connection, call.space)))

    def snapshot(self, call: Call, fn: Callable[[AnswersUnit], T]) -> T:
        """Runs ``fn`` over one consistent state."""
        return self._database.read(call, lambda connection: fn(SqlAnswersUnit(connection, call.space)), snapshot=True)
