"""Connections that die: idle, in the middle of a unit, and during COMMIT; MariaDB only, a file has none."""

import os
import signal
import time
from threading import Event

import pytest
from sqlalchemy import Connection, text

from ramet_server.database import schema
from ramet_server.database.database import Database
from ramet_server.database.prepared import Bound
from ramet_server.domain.errors import DatabaseUnavailable, DeadlinePassed, OutcomeUnknown
from tests.database import counters
from tests.harness.mariadb import MariaDb
from tests.harness.proxy import Cut, Proxy

pytestmark = pytest.mark.mariadb


def _thread(connection: Connection) -> int:
    number: int = connection.execute(text("SELECT connection_id()")).scalar_one()
    return number


def _wait_until_gone(server: MariaDb, thread: int) -> None:
    pause = Event()
    give_up_at = time.monotonic() + 30
    while server.execute(f"SELECT 1 FROM information_schema.processlist WHERE id = {thread}"):
        assert time.monotonic() < give_up_at
        pause.wait(0.05)


@pytest.mark.parametrize("kind", ["read", "write"])
def test_the_call_after_an_idle_connection_was_killed_works(
    mariadb_server: MariaDb, on_mariadb: Database, kind: str
) -> None:
    thread = on_mariadb.read(counters.call(), _thread)
    mariadb_server.execute(f"KILL CONNECTION {thread}")
    _wait_until_gone(mariadb_server, thread)
    assert getattr(on_mariadb, kind)(counters.call(), _thread) != thread


def test_a_single_trip_is_not_sent_into_a_connection_that_was_killed(
    mariadb_server: MariaDb, on_mariadb: Database
) -> None:
    thread = on_mariadb.read(counters.call(), _thread)
    mariadb_server.execute(f"KILL CONNECTION {thread}")
    _wait_until_gone(mariadb_server, thread)
    # Nothing could tell afterwards what became of it.
    changes = [Bound("DO %s", ((1,),), stores=False)]
    assert on_mariadb.write_in_one_trip(counters.call(), lambda _: ("done", [], changes)) == "done"


def test_the_call_after_a_long_idle_time_works(mariadb_server: MariaDb, on_mariadb: Database) -> None:
    def idle_soon(connection: Connection) -> int:
        connection.execute(text("SET SESSION wait_timeout = 2"))
        return _thread(connection)

    thread = on_mariadb.read(counters.call(), idle_soon)
    _wait_until_gone(mariadb_server, thread)
    assert on_mariadb.read(counters.call(), _thread) != thread


def test_a_unit_whose_connection_dies_before_commit_runs_again(mariadb_server: MariaDb, on_mariadb: Database) -> None:
    space_id = counters.started(on_mariadb)
    runs = 0

    def work(connection: Connection) -> int:
        nonlocal runs
        runs += 1
        counters.add(connection, space_id)
        if runs == 1:
            mariadb_server.execute(f"KILL CONNECTION {_thread(connection)}")
        return counters.add(connection, space_id)

    assert on_mariadb.write(counters.call(), work) == 2
    assert (runs, counters.stored(on_mariadb, space_id)) == (2, 2)


def test_a_unit_whose_connection_always_dies_changes_nothing(mariadb_server: MariaDb, on_mariadb: Database) -> None:
    space_id = counters.started(on_mariadb)
    runs = 0

    def work(connection: Connection) -> None:
        nonlocal runs
        runs += 1
        counters.add(connection, space_id)
        mariadb_server.execute(f"KILL CONNECTION {_thread(connection)}")
        counters.add(connection, space_id)

    with pytest.raises(DatabaseUnavailable):
        on_mariadb.write(counters.call(), work)
    assert (runs, counters.stored(on_mariadb, space_id)) == (2, 0)


@pytest.mark.parametrize(("cut", "stored"), [(Cut.BEFORE_COMMIT, 0), (Cut.AFTER_COMMIT, 1)])
def test_a_connection_that_dies_in_commit_leaves_the_outcome_unknown(
    mariadb_server: MariaDb, on_mariadb: Database, mariadb_url: str, cut: Cut, stored: int
) -> None:
    space_id = counters.started(on_mariadb)
    with Proxy(mariadb_server.port) as proxy:
        behind = Database.open(mariadb_url.replace(str(mariadb_server.port), str(proxy.port)))
        proxy.cut = cut
        runs = 0

        def work(connection: Connection) -> None:
            nonlocal runs
            runs += 1
            counters.add(connection, space_id)

        with pytest.raises(OutcomeUnknown):
            behind.write(counters.call(), work)
        assert (runs, proxy.cuts) == (1, 1)
        assert counters.stored(behind, space_id) == stored
        behind.close()


def test_a_server_that_stops_is_unavailable_and_comes_back() -> None:
    with MariaDb() as server:
        database = Database.open(server.new_database())
        schema.prepare(database, counters.call())
        space_id = counters.started(database)
        server.stop(kill=True)
        for kind in ("read", "write"):
            with pytest.raises(DatabaseUnavailable) as raised:
                getattr(database, kind)(counters.call(20), lambda connection: counters.value(connection, space_id))
            assert "127.0.0.1" not in str(raised.value)
        with pytest.raises(DatabaseUnavailable):
            database.ping(counters.call(20))
        server.start()
        assert counters.stored(database, space_id) == 0

        # A server that hangs answers neither the statement nor the request to stop it.
        def hang(connection: Connection) -> None:
            os.kill(server.pid, signal.SIGSTOP)
            counters.add(connection, space_id)

        started = time.monotonic()
        with pytest.raises(DeadlinePassed):
            database.write(counters.call(0.5), hang)
        assert time.monotonic() - started < 10
        os.kill(server.pid, signal.SIGCONT)
        assert counters.stored(database, space_id) == 0
        database.close()


def test_a_database_that_does_not_exist_is_unavailable(mariadb_server: MariaDb) -> None:
    database = Database.open(f"mysql://root@127.0.0.1:{mariadb_server.port}/missing")
    with pytest.raises(DatabaseUnavailable):
        database.read(counters.call(), _thread)
    database.close()


def test_a_database_that_takes_no_writes_is_unavailable(mariadb_server: MariaDb, on_mariadb: Database) -> None:
    space_id = counters.started(on_mariadb)

    def as_reader(connection: Connection) -> None:
        connection.execute(text("SET SESSION TRANSACTION READ ONLY"))
        connection.exec_driver_sql("COMMIT")
        connection.exec_driver_sql("BEGIN")
        counters.add(connection, space_id)

    with pytest.raises(DatabaseUnavailable, match="no writes"):
        on_mariadb.write(counters.call(), as_reader)
