"""Nobody who left holds a connection, and nobody who stayed is hit."""

import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event, Timer

import pytest
from sqlalchemy import Connection, text

from ramet_server.database.database import Database
from ramet_server.domain.call import Call
from ramet_server.domain.errors import Cancelled, DeadlinePassed, RametError
from tests.database import counters

_SOON_S = 5.0
"""Far less than the long statements take, and enough for a busy machine."""

_COUNT = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900000) SELECT count(*) FROM n"
_LONG = {
    "sqlite": [_COUNT.replace("900000", "900000000")],
    "mysql": ["SELECT SLEEP(60)", _COUNT + ", n AS b WHERE n.i + b.i > 0"],
}


def _run_long(database: Database, call: Call, kind: str, statement: str) -> float:
    """Runs a statement that the call's end must stop; returns the seconds it took."""
    started = time.monotonic()
    with pytest.raises(RametError) as raised:
        getattr(database, kind)(call, lambda connection: connection.execute(text(statement)).all())
    assert isinstance(raised.value, Cancelled if call.cancelled.is_set() else DeadlinePassed)
    return time.monotonic() - started


@pytest.mark.parametrize("kind", ["read", "write"])
def test_a_long_statement_ends_with_the_deadline(database: Database, kind: str) -> None:
    for statement in _LONG[database.engine.dialect.name]:
        assert _run_long(database, counters.call(0.2), kind, statement) < _SOON_S
        assert counters.stored(database, "none") is None


@pytest.mark.parametrize("kind", ["read", "write"])
def test_a_long_statement_ends_with_its_call(database: Database, kind: str) -> None:
    for statement in _LONG[database.engine.dialect.name]:
        call = counters.call()
        Timer(0.2, call.cancelled.set).start()
        assert _run_long(database, call, kind, statement) < _SOON_S
        assert counters.stored(database, "none") is None


def test_a_stopped_write_leaves_nothing(database: Database) -> None:
    space_id = counters.started(database)

    def work(connection: Connection) -> None:
        counters.add(connection, space_id)
        connection.execute(text(_LONG[database.engine.dialect.name][0])).all()

    with pytest.raises(DeadlinePassed):
        database.write(counters.call(0.2), work)
    assert counters.stored(database, space_id) == 0


def test_a_statement_after_the_deadline_never_starts(database: Database) -> None:
    call = counters.call()
    space_id = counters.started(database)

    def work(connection: Connection) -> None:
        call.cancelled.set()
        counters.add(connection, space_id)
        raise AssertionError("The statement was not refused.")

    with pytest.raises(Cancelled):
        database.write(call, work)
    assert counters.stored(database, space_id) == 0


def test_a_call_that_is_over_takes_no_connection(database: Database) -> None:
    with pytest.raises(DeadlinePassed):
        database.read(counters.call(-1), lambda _: pytest.fail("The unit ran."))


def test_a_call_that_ends_before_commit_changes_nothing(database: Database) -> None:
    space_id = counters.started(database)
    call = counters.call()

    def work(connection: Connection) -> None:
        counters.add(connection, space_id)
        call.cancelled.set()

    with pytest.raises(Cancelled):
        database.write(call, work)
    assert counters.stored(database, space_id) == 0


def test_deadlines_that_pass_as_units_end_never_hit_the_next_unit(database_url: str) -> None:
    database = Database.open(database_url, pool_size=1)
    # Each unit ends at about its deadline; the next one, on the same connection, has none.
    for number in range(150):
        with suppress(DeadlinePassed):
            database.read(counters.call(0.001 + number % 10 / 5000), lambda c: c.execute(text("SELECT 1")).all())
        assert database.read(counters.call(), lambda c: c.execute(text("SELECT 2")).scalar()) == 2
    database.close()


def test_the_wait_for_a_connection_ends_with_the_deadline(database_url: str) -> None:
    database = Database.open(database_url, pool_size=1)
    taken, done = Event(), Event()

    def hold(_: Connection) -> None:
        taken.set()
        done.wait(30)

    with ThreadPoolExecutor(1) as threads:
        holder = threads.submit(database.read, counters.call(), hold)
        assert taken.wait(30)
        started = time.monotonic()
        with pytest.raises(DeadlinePassed):
            database.read(counters.call(0.2), lambda _: pytest.fail("The unit ran."))
        assert time.monotonic() - started < _SOON_S
        # A probe is not held up by units.
        database.ping(counters.call(20))
        done.set()
        holder.result()
    database.close()


def test_the_wait_for_a_lock_ends_with_the_deadline(database: Database) -> None:
    space_id = counters.started(database)
    taken, done = Event(), Event()

    def hold(connection: Connection) -> None:
        counters.add(connection, space_id)
        taken.set()
        done.wait(30)

    with ThreadPoolExecutor(1) as threads:
        holder = threads.submit(database.write, counters.call(), hold)
        assert taken.wait(30)
        started = time.monotonic()
        with pytest.raises(DeadlinePassed):
            database.write(counters.call(0.2), lambda connection: counters.add(connection, space_id))
        assert time.monotonic() - started < _SOON_S
        done.set()
        holder.result()
    assert counters.stored(database, space_id) == 1


def test_the_wait_for_another_process_on_the_file_ends_with_the_deadline(sqlite_url: str) -> None:
    database = Database.open(sqlite_url)
    other = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
    database.write(counters.call(), lambda connection: connection.execute(text("CREATE TABLE a (b)")))
    other.execute("BEGIN IMMEDIATE")
    started = time.monotonic()
    with pytest.raises(DeadlinePassed):
        database.write(counters.call(0.2), lambda _: pytest.fail("The unit ran."))
    assert time.monotonic() - started < _SOON_S
    other.execute("COMMIT")
    database.write(counters.call(), lambda connection: connection.execute(text("INSERT INTO a VALUES (1)")))
    other.close()
    database.close()
