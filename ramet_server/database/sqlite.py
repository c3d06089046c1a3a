"""SQLite: one file, many readers, one writer at a time."""

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from ramet_server.database.backend import RowsMoved
from ramet_server.database.fair_lock import FairLock
from ramet_server.database.faults import Fault, classify
from ramet_server.database.prepared import Bound, Guard, Row, run
from ramet_server.domain.call import Call
from ramet_server.domain.errors import WriteConflict

_BUSY_STEP_MS = 250
"""How long SQLite itself waits for other processes; between steps the call may have ended."""

_LONGEST_WAIT_S = 30.0
_CONNECT_TIMEOUT_S = 5.0


class SqliteBackend:
    """The policy for SQLite files."""

    drops_interrupted = False

    def __init__(self) -> None:
        # Threads that meet in BEGIN IMMEDIATE poll and starve each other; here they queue.
        self._writer = FairLock()

    def engine_options(self) -> dict[str, Any]:
        """Returns the dialect's keyword arguments of ``create_engine``."""
        # With isolation_level None the driver begins nothing on its own: reads run plainly, writes begin below.
        return {"connect_args": {"isolation_level": None, "timeout": _BUSY_STEP_MS / 1000}}

    def on_connect(self, driver: sqlite3.Connection) -> None:
        """Sets up a new driver connection."""
        _use_wal(driver)
        driver.execute("PRAGMA synchronous = FULL")
        # What is erased must be gone from the file, not only from its index.
        driver.execute("PRAGMA secure_delete = ON")

    def is_usable(self, driver: sqlite3.Connection) -> bool:  # noqa: ARG002 - a file does not hang up
        """Tells that it is."""
        return True

    @contextmanager
    def turn(self, call: Call) -> Iterator[None]:
        """Waits until no other thread of this process writes."""
        remaining = call.remaining()
        if not self._writer.acquire(_LONGEST_WAIT_S if remaining is None else remaining):
            call.check()
            raise _too_busy()
        try:
            yield
        finally:
            self._writer.release()

    def begin_write(self, connection: Connection, call: Call) -> None:
        """Opens a transaction that holds the file's write lock, after other processes let go of it."""
        give_up_at = time.monotonic() + _LONGEST_WAIT_S
        while True:
            try:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            except DBAPIError as error:
                if classify(error) is not Fault.RACE:
                    raise
                call.check()
                if time.monotonic() >= give_up_at:
                    raise _too_busy() from error
            else:
                return

    def begin_with(self, connection: Connection, call: Call, reads: Sequence[Bound]) -> list[Sequence[Row]]:
        """Opens a transaction and reads."""
        self.begin_write(connection, call)
        return [run(connection, each) for each in reads]

    def commit_with(self, connection: Connection, changes: Sequence[Bound], reached: Callable[[], None]) -> None:
        """Runs statements and the COMMIT."""
        for each in changes:
            run(connection, each)
        reached()
        connection.commit()

    def commit_guarded(
        self,
        connection: Connection,
        call: Call,
        guards: Sequence[Guard],
        changes: Sequence[Bound],
        reached: Callable[[], None],
    ) -> None:
        """Runs guards, statements and the COMMIT."""
        self.begin_write(connection, call)
        for guard in guards:
            if run(connection, guard.query)[0][0] != guard.number:
                raise RowsMoved
        self.commit_with(connection, changes, reached)

    def begin_snapshot(self, connection: Connection) -> None:
        """Opens a transaction whose reads all see the state at the first of them."""
        connection.exec_driver_sql("BEGIN")

    @contextmanager
    def schema_lock(self, connection: Connection, call: Call) -> Iterator[None]:
        """Makes all changes of the schema in one transaction, which here can hold DDL."""
        self.begin_write(connection, call)
        yield
        connection.commit()

    def forget_deleted(self, connection: Connection) -> None:
        """Empties the write-ahead log, which still holds the pages as they were."""
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")

    def interrupt(self, driver: sqlite3.Connection, strike: int) -> None:  # noqa: ARG002 - each strike is the same
        """Stops the statement that runs on a driver connection, from another thread."""
        driver.interrupt()


def _use_wal(driver: sqlite3.Connection) -> None:
    """Puts the file in WAL mode, however many processes try that at once."""
    give_up_at = time.monotonic() + _CONNECT_TIMEOUT_S
    while True:
        try:
            # SQLite does not wait for locks while it changes the mode, so first see whether it must.
            if driver.execute("PRAGMA journal_mode").fetchone() == ("wal",):
                return
            driver.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() >= give_up_at:
                raise
            time.sleep(0.01)  # in place of the busy handler that SQLite leaves out here


def _too_busy() -> WriteConflict:
    return WriteConflict("The database file is busy with other writers; try again.")
