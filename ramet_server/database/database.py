"""Units of work: where a connection comes from, what is retried, and what a caller is told."""

import logging
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Semaphore
from typing import Self, TypeVar

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import QueuePool

from ramet_server.database.backend import Backend, RowsHeld
from ramet_server.database.engine import WATCH, open_engine
from ramet_server.database.faults import Fault, classify, refusal
from ramet_server.database.interrupter import Interrupter, Watch
from ramet_server.database.kept import KeptConnections
from ramet_server.database.moved import Moved, forget, taken
from ramet_server.database.prepared import Bound, Guard, Row
from ramet_server.domain.call import Call
from ramet_server.domain.errors import OutcomeUnknown, Overloaded, RametError

_log = logging.getLogger(__name__)

_ATTEMPTS = 3
_LONGEST_QUEUE_S = 30.0

T = TypeVar("T")


class Database:
    """Runs functions in units of work, each on one connection of the pool.

    Errors of the driver leave as errors of the domain; those that a function raises leave as they are.
    """

    def __init__(self, engine: Engine, backend: Backend) -> None:
        if not isinstance(engine.pool, QueuePool):
            raise TypeError("A Database needs an engine with a QueuePool.")
        self.engine = engine
        self.backend = backend
        self.pool_size = engine.pool.size()
        """Units of work that can run at once."""
        self.moved = Moved()
        """Tells what this process commits."""
        self._slots = Semaphore(self.pool_size)
        self._interrupter = Interrupter()
        self._connections = KeptConnections(engine, backend.is_usable, self.pool_size)

    @classmethod
    def open(cls, url: str, pool_size: int = 8) -> Self:
        """Returns the database behind a URL; nothing is connected yet. Raises ValueError for a bad URL."""
        return cls(*open_engine(url, pool_size))

    def close(self) -> None:
        """Closes all idle connections and the interrupter; units in flight should have ended."""
        self._interrupter.close()
        self._connections.close()
        self.engine.dispose()

    def read(self, call: Call, fn: Callable[[Connection], T], *, snapshot: bool = False) -> T:
        """Runs ``fn`` over committed rows; it must not write, and may run more than once.

        Each statement sees what is committed when it starts; with ``snapshot`` all see one state, for
        two statements more.
        """
        return self._retried(call, partial(self._read_once, call, fn, snapshot))

    def write(self, call: Call, fn: Callable[[Connection], T]) -> T:
        """Runs ``fn`` in a transaction and commits; ``fn`` may run more than once, and only its last run counts.

        Raises WriteConflict where others kept standing in the way, DatabaseUnavailable where nothing was
        changed, and OutcomeUnknown where the connection was lost during COMMIT.
        """
        return self._retried(call, partial(self._write_once, call, fn))

    def write_in_two_trips(
        self,
        call: Call,
        reads: Callable[[Connection], Sequence[Bound]],
        then: Callable[[Connection, Sequence[Sequence[Row]]], tuple[T, Sequence[Bound]]],
    ) -> T:
        """Runs a transaction in two trips: its first reads, and its last statements with the COMMIT.

        ``then`` makes of the rows a result and those statements; without any, nothing is committed. It
        may run more than once, but only a lost connection is tried again. Raises what ``write`` raises,
        RowsHeld where a read that must not wait met a lock, and KeyTaken where a unique key of the
        statements is taken; nothing was changed then.
        """
        return self._retried(call, partial(self._two_trips_once, call, reads, then), races=False)

    def write_in_one_trip(
        self,
        call: Call,
        make: Callable[[Connection], tuple[T, Sequence[Guard], Sequence[Bound]]],
    ) -> T:
        """Runs a transaction whose statements are known before, and whose guards tell whether they may be run.

        ``make`` returns a result, the guards and the statements; it must read nothing, and may run more
        than once. Raises what ``write_in_two_trips`` raises, RowsHeld where a guard met a lock that it must
        not wait for, and RowsMoved where a guard found another number; nothing was changed then.
        """
        return self._retried(call, partial(self._one_trip_once, call, make), races=False)

    def forget_deleted(self, call: Call) -> None:
        """Removes what the database keeps of erased text beside its tables, where a statement can do that.

        Call it after an erasure; that others read at the moment may put it off to the next time.
        """
        self._retried(call, partial(self._read_once, call, self.backend.forget_deleted, False))

    def ping(self, call: Call) -> None:
        """Returns if the database answers before the call's deadline; never waits behind units of work."""
        self._retried(call, partial(self._ping_once, call))

    def _retried(self, call: Call, attempt: Callable[[], T], *, races: bool = True) -> T:
        lost = False
        for number in range(1, _ATTEMPTS + 1):
            try:
                return attempt()
            except _MayRetry as error:
                if number == _ATTEMPTS or (lost if error.lost else not races):
                    raise refusal(error.cause) from error.cause
                lost = lost or error.lost
                cause = error.cause
            # Unequal pauses, so that those who collided do not collide again.
            call.cancelled.wait(random.uniform(0.5, 1.5) * 0.005 * 4**number)  # noqa: S311 - no secret hangs on it
            try:
                call.check()
            except RametError as over:
                raise over from cause
        raise AssertionError("The last attempt returns or raises.")

    def _read_once(self, call: Call, fn: Callable[[Connection], T], snapshot: bool) -> T:
        with self._slot(call), self._unit(call) as (connection, watch):
            if snapshot:
                self.backend.begin_snapshot(connection)
            result = fn(connection)
            if watch.interrupted:
                # Some statements (SLEEP) end early without an error when they are interrupted.
                call.check()
            return result

    def _write_once(self, call: Call, fn: Callable[[Connection], T]) -> T:
        with self.backend.turn(call), self._slot(call), self._unit(call) as (connection, watch):
            self.backend.begin_write(connection, call)
            forget(connection)
            result = fn(connection)
            self._commit(call, connection, watch, lambda reached: _plainly(connection, reached))
            return result

    def _two_trips_once(
        self,
        call: Call,
        reads: Callable[[Connection], Sequence[Bound]],
        then: Callable[[Connection, Sequence[Sequence[Row]]], tuple[T, Sequence[Bound]]],
    ) -> T:
        with self.backend.turn(call), self._slot(call), self._unit(call) as (connection, watch):
            forget(connection)
            first = reads(connection)
            try:
                raw = self.backend.begin_with(connection, call, first)
            except DBAPIError as error:
                if classify(error) is Fault.RACE:
                    raise RowsHeld from error
                raise
            rows = [each.read(found) for each, found in zip(first, raw, strict=True)]
            result, changes = then(connection, rows)
            if changes:
                self._commit(call, connection, watch, partial(self.backend.commit_with, connection, changes))
            return result

    def _one_trip_once(self, call: Call, make: Callable[[Connection], tuple[T, Sequence[Guard], Sequence[Bound]]]) -> T:
        # Nobody watches it, since nothing is sent before the time in which it may be hit would end.
        with self.backend.turn(call), self._slot(call), self._lent() as connection:
            forget(connection)
            result, guards, changes = make(connection)
            commit = partial(self.backend.commit_guarded, connection, call, guards, changes)
            self._commit(call, connection, None, commit)
            return result

    def _commit(
        self, call: Call, connection: Connection, watch: Watch | None, commit: Callable[[Callable[[], None]], None]
    ) -> None:
        if watch is not None:
            # From here on nothing may hit the connection: a COMMIT that is interrupted tells nothing.
            watch.end()
        call.check()
        committing = False

        def reached() -> None:
            nonlocal committing
            committing = True

        try:
            commit(reached)
        except DBAPIError as error:
            fault = classify(error)
            if fault is Fault.DUPLICATE and not committing:
                raise KeyTaken from error
            # A server that is lost may have got the COMMIT along with what came before it.
            if fault in (Fault.RACE, Fault.NO_WRITES) or not (committing or fault is Fault.LOST):
                raise
            _log.warning("A COMMIT ended in an error, so its outcome is unknown: %s", error)
            raise OutcomeUnknown("The connection was lost while the change was being committed.") from error
        self.moved.tell(taken(connection))

    def _ping_once(self, call: Call) -> None:
        with self._unit(call) as (connection, _):
            connection.execute(text("SELECT 1"))

    @contextmanager
    def _slot(self, call: Call) -> Iterator[None]:
        """Waits for a connection's turn here, because the pool itself knows no deadlines."""
        remaining = call.remaining()
        if not self._slots.acquire(timeout=_LONGEST_QUEUE_S if remaining is None else remaining):
            call.check()
            raise Overloaded("All database connections are busy.", retry_after_s=1.0)
        try:
            yield
        finally:
            self._slots.release()

    @contextmanager
    def _unit(self, call: Call) -> Iterator[tuple[Connection, Watch]]:
        """Lends a watched connection."""
        call.check()
        with self._lent() as connection:
            driver = connection.connection.driver_connection
            watch = self._interrupter.watch(call, partial(self.backend.interrupt, driver))
            connection.info[WATCH] = watch
            try:
                yield connection, watch
            except (DBAPIError, PoolTimeout):
                if watch.interrupted:
                    call.check()
                raise
            finally:
                self._interrupter.forget(watch)
                if not connection.invalidated:
                    connection.info.pop(WATCH, None)
                    if watch.interrupted and self.backend.drops_interrupted:
                        connection.invalidate()

    @contextmanager
    def _lent(self) -> Iterator[Connection]:
        """Lends a connection, and takes it back in a state in which the next unit can use it."""
        try:
            kept = self._connections.take()
            try:
                yield kept.connection
            finally:
                self._connections.give_back(kept)
        except (DBAPIError, PoolTimeout) as error:
            fault = classify(error)
            if fault in (Fault.RACE, Fault.LOST):
                raise _MayRetry(error, lost=fault is Fault.LOST) from error
            raise refusal(error) from error


class KeyTaken(Exception):
    """Says that a unique key is taken, so that nothing was committed; it never reaches a client."""


def _plainly(connection: Connection, reached: Callable[[], None]) -> None:
    reached()
    connection.commit()


class _MayRetry(Exception):
    """Says that nothing was changed and that the unit may run again."""

    def __init__(self, cause: DBAPIError | PoolTimeout, *, lost: bool) -> None:
        super().__init__()
        self.cause = cause
        self.lost = lost
