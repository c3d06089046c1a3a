"""Units of work of verifications: one state to look at, or a transaction to mend in."""

from collections.abc import Callable
from typing import Generic, TypeVar

from sqlalchemy import Connection

from ramet_server.database.database import Database
from ramet_server.domain.call import Call

U = TypeVar("U")
T = TypeVar("T")


class SqlVerifyStore(Generic[U]):
    """Implements ``domain.findings.VerifyStore``."""

    def __init__(self, database: Database, unit: Callable[[Connection, str], U]) -> None:
        """Takes what makes a unit of a connection and a space."""
        self._database = database
        self._make = unit

    def snapshot(self, call: Call, fn: Callable[[U], T]) -> T:
        """Runs ``fn``, which only reads, over one consistent state."""
        return self._database.read(call, lambda connection: fn(self._make(connection, call.space)), snapshot=True)

    def write(self, call: Call, fn: Callable[[U], T]) -> T:
        """Runs ``fn`` and commits; ``fn`` may run more than once, and only its last run counts."""
        return self._database.write(call, lambda connection: fn(self._make(connection, call.space)))
