"""Units of work over the forest of one space."""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection

from ramet_server.database.database import Database
from ramet_server.database.request_log import SqlRequestLog
from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.limits import Limits
from tree_service.rules.ports import UnitOfWork
from tree_service.store.changes import SqlChanges
from tree_service.store.configs import SqlConfigs
from tree_service.store.lines import SqlLines
from tree_service.store.nodes import SqlNodes
from tree_service.store.refs import SqlRefs
from tree_service.store.removals import SqlRemovals
from tree_service.store.spaces import SpaceMissing, SqlSpace, make_space
from tree_service.store.swept import SqlSwept

_SERVICE = "tree"

T = TypeVar("T")


class TreeUnit:
    """One transaction; implements ``rules.ports.UnitOfWork``."""

    def __init__(self, connection: Connection, space: str, limits: Limits, clock: Clock) -> None:
        self.requests = SqlRequestLog(connection, space, _SERVICE, clock, limits.request_id_hours)
        self.space = SqlSpace(connection, space)
        self.nodes = SqlNodes(connection, space)
        self.lines = SqlLines(connection, space)
        self.refs = SqlRefs(connection, space)
        self.configs = SqlConfigs(connection, space)
        self.removals = SqlRemovals(connection, space)
        self.swept = SqlSwept(connection, space)
        self.changes = SqlChanges(connection, space, self.space, clock)


class TreeStore:
    """Opens units of work; implements ``rules.ports.Store``."""

    def __init__(self, database: Database, limits: Limits, clock: Clock) -> None:
        self._database = database
        self._limits = limits
        self._clock = clock

    def read(self, call: Call, fn: Callable[[UnitOfWork], T]) -> T:
        """Runs ``fn`` over one committed state."""
        # A snapshot, since a node and its children come from statements of their own.
        return self._database.read(call, lambda connection: fn(self._unit(connection, call)), snapshot=True)

    def write(self, call: Call, fn: Callable[[UnitOfWork], T]) -> T:
        """Runs ``fn`` and commits; ``fn`` may run more than once, and only its last run counts."""
        return write_making_space(
            self._database, call, self._clock, lambda connection: fn(self._unit(connection, call))
        )

    def _unit(self, connection: Connection, call: Call) -> TreeUnit:
        return TreeUnit(connection, call.space, self._limits, self._clock)


def write_making_space(database: Database, call: Call, clock: Clock, fn: Callable[[Connection], T]) -> T:
    """Runs ``fn`` and commits, and once more if it misses the row of the space, which is made then."""
    while True:
        try:
            return database.write(call, fn)
        except SpaceMissing:
            # In a transaction of its own: two that made it within theirs would wait for each other.
            database.write(call, lambda connection: make_space(connection, call.space, clock.now()))
