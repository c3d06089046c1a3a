"""Deletes everything of one space, in short transactions.

Each of them leaves something whole behind, so the work may be cut at any moment and run again. Only
what was there when it began is meant: what a writer makes anew meanwhile is deleted too, or stays and is
whole by itself. Nothing is refused to writers, because a space is made by its first write.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from sqlalchemy import Connection, Table

import session_service
import telemetry
import tree_service
from ramet_server.database.database import Database
from ramet_server.database.spaces import NOTES, count_rows, delete_notes
from ramet_server.database.tables.session import deleted_session
from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.limits import Limits
from ramet_server.sweeping import Sweep
from ramet_server.verifying import Verification
from tree_service.rules.clearing import clear_some
from tree_service.store.places import SqlForest

_SESSIONS = 50
_NODES = 500
_NOTES = 1000


@dataclass(frozen=True)
class Cleared:
    """What was deleted."""

    arrivals: int = 0
    """Sessions that an import had not brought to an end."""
    sessions: int = 0
    nodes: int = 0
    diagnoses: int = 0
    notes: int = 0
    """Rows that stand alone, such as remembered requests."""
    left: Mapping[str, int] = field(default_factory=dict)
    """Rows that are there now, by table: what was written meanwhile."""


class Clearing:
    """Deletes one space of one database; it blocks, and belongs on a thread of its own."""

    def __init__(self, database: Database, limits: Limits, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._sessions = session_service.build_clearing(database, limits, clock)
        self._arriving = session_service.build_arriving(database, limits, clock)
        self._telemetry = telemetry.build_sweep(database, limits, clock)
        self._forest = tree_service.joining_units(clock, limits)
        self._verification = Verification(database, limits, clock)
        self._released = Sweep(database, limits, clock)

    def foretell(self, call: Call) -> Mapping[str, int]:
        """Counts the rows of the call's space by table, and changes nothing."""
        return self._database.read(call, lambda connection: count_rows(connection, call.space), snapshot=True)

    def run(self, call: Call) -> Iterator[Cleared]:
        """Deletes the call's space; yields what was deleted so far after each transaction, then what is left."""
        began = self._clock.now()
        done = Cleared()
        works: dict[str, Callable[[], tuple[int, bool]]] = {
            "arrivals": lambda: self._some_arrivals(call, began),
            "sessions": lambda: self._sessions.some(call, began, _SESSIONS),
            "nodes": lambda: self._some_nodes(call),
            "diagnoses": lambda: self._telemetry.clear(call, began),
        }
        for name, work in works.items():
            for count in _until_done(work):
                done = replace(done, **{name: getattr(done, name) + count})
                yield done
        # What belongs to no session, node or diagnosis, because damage left it behind.
        for _ in self._verification.run(call, space=call.space, repair=True):
            yield done
        # Erases what the deletion of large sessions left to the sweep, of all spaces.
        self._released.erase_released(replace(call, space=""))
        for table in NOTES:
            # Notes of deleted sessions are made by the deletion itself; other young ones are a writer's.
            through = self._clock.now() if table is deleted_session else began
            for count in _until_done(partial(self._some_notes, call, table, through)):
                done = replace(done, notes=done.notes + count)
                yield done
        yield replace(done, left=self.foretell(call))

    def _some_arrivals(self, call: Call, through: datetime) -> tuple[int, bool]:
        before = through + timedelta(microseconds=1)
        dropped = self._arriving.drop_stale(call, before, _SESSIONS, call.space)
        return dropped, dropped == _SESSIONS

    def _some_nodes(self, call: Call) -> tuple[int, bool]:
        def work(connection: Connection) -> tuple[int, bool]:
            forest = SqlForest(connection, call.space)
            return clear_some(self._forest(connection, call.space), forest, _NODES, self._clock.now())

        return self._database.write(call, work)

    def _some_notes(self, call: Call, table: Table, through: datetime) -> tuple[int, bool]:
        deleted = self._database.write(
            call, lambda connection: delete_notes(connection, table, call.space, through, _NOTES)
        )
        return deleted, deleted == _NOTES


def _until_done(work: Callable[[], tuple[int, bool]]) -> Iterator[int]:
    more = True
    while more:
        count, more = work()
        yield count
