"""Units of work: all or nothing, and nothing lost when many work at once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from threading import Barrier

import pytest
from sqlalchemy import Connection, insert, select, text, update

from ramet_server.database import schema
from ramet_server.database.database import Database
from ramet_server.database.faults import is_duplicate
from ramet_server.database.tables.shared import space
from ramet_server.domain.errors import Internal, SessionNotFound, WriteConflict
from tests.database import counters
from tests.harness.mariadb import MariaDb


def test_a_write_is_seen_by_the_next_read(database: Database) -> None:
    space_id = counters.started(database)
    assert database.write(counters.call(), lambda connection: counters.add(connection, space_id)) == 1
    assert counters.stored(database, space_id) == 1


@pytest.mark.parametrize("error", [SessionNotFound("none"), RuntimeError("a bug")])
def test_an_error_undoes_the_whole_unit_and_leaves_as_it_is(database: Database, error: Exception) -> None:
    space_id = counters.started(database)

    def work(connection: Connection) -> None:
        counters.add(connection, space_id)
        raise error

    with pytest.raises(type(error)) as raised:
        database.write(counters.call(), work)
    assert raised.value is error
    assert counters.stored(database, space_id) == 0


def test_320_read_modify_writes_of_8_threads_lose_none(database: Database) -> None:
    space_id = counters.started(database)

    def work(_: int) -> None:
        for _ in range(40):
            database.write(counters.call(), lambda connection: counters.add(connection, space_id))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    assert counters.stored(database, space_id) == 320


def test_units_that_lock_in_opposite_order_both_succeed(database: Database) -> None:
    one, other = counters.started(database), counters.started(database)
    runs: list[str] = []
    met = Barrier(2, timeout=30)

    def work(first: str, second: str) -> None:
        # The first run of each meets the other between its two locks, where the backend lets it.
        def both(connection: Connection) -> None:
            runs.append(first)
            counters.add(connection, first)
            if database.engine.dialect.name == "mysql" and runs.count(first) == 1:
                met.wait()
            counters.add(connection, second)

        database.write(counters.call(20), both)

    with ThreadPoolExecutor(2) as threads:
        for future in [threads.submit(work, one, other), threads.submit(work, other, one)]:
            future.result()
    assert (counters.stored(database, one), counters.stored(database, other)) == (2, 2)
    # Of the two that met, the server let one through; the other ran again.
    assert len(runs) == (3 if database.engine.dialect.name == "mysql" else 2)


@pytest.mark.mariadb
def test_a_unit_that_always_loses_ends_as_a_conflict(mariadb_server: MariaDb, database: Database) -> None:
    runs = 0

    def work(connection: Connection) -> None:
        nonlocal runs
        runs += 1
        if database.engine.dialect.name == "mysql":
            connection.execute(text("SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'Deadlock'"))
        raise WriteConflict("as the store itself may say")

    with pytest.raises(WriteConflict):
        database.write(counters.call(), work)
    assert runs == (3 if database.engine.dialect.name == "mysql" else 1)


def test_a_taken_key_is_known_as_such_and_the_unit_goes_on(database: Database) -> None:
    space_id = counters.started(database)

    def work(connection: Connection) -> int | None:
        with pytest.raises(Exception) as raised:  # noqa: PT011 - its kind is the question
            counters.start(connection, space_id)
        assert is_duplicate(raised.value)  # type: ignore[arg-type]  # as above
        counters.add(connection, space_id)
        return counters.value(connection, space_id)

    assert database.write(counters.call(), work) == 1


def test_a_fault_of_ours_tells_the_client_nothing(database: Database) -> None:
    space_id = counters.started(database)
    with pytest.raises(Internal) as raised:
        database.write(counters.call(), lambda connection: counters.start(connection, space_id))
    assert space_id not in str(raised.value)
    assert "INSERT" not in str(raised.value)


def test_the_log_of_a_fault_holds_the_statement_but_no_value(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    secret = counters.call().space
    with pytest.raises(Internal):
        database.read(counters.call(), lambda connection: connection.execute(text("SELECT nothing, :a"), {"a": secret}))
    assert "SELECT nothing" in caplog.text
    assert secret not in caplog.text


def test_a_statement_sees_what_was_committed_before_it(database: Database) -> None:
    space_id = counters.started(database)

    def work(connection: Connection) -> list[int | None]:
        before = counters.value(connection, space_id)
        database.write(counters.call(), lambda other: counters.add(other, space_id))
        return [before, counters.value(connection, space_id)]

    assert database.read(counters.call(), work) == [0, 1]


def test_a_snapshot_sees_one_state(database: Database) -> None:
    space_id = counters.started(database)

    def work(connection: Connection) -> list[int | None]:
        before = counters.value(connection, space_id)
        database.write(counters.call(), lambda other: counters.add(other, space_id))
        return [before, counters.value(connection, space_id)]

    assert database.read(counters.call(), work, snapshot=True) == [0, 0]
    # The next unit on that connection sees committed rows again.
    assert counters.stored(database, space_id) == 1


def test_an_update_tells_the_rows_it_matched(database: Database) -> None:
    space_id = counters.started(database)
    same = update(space).where(space.c.space_id == space_id).values(root_count=0)
    assert database.write(counters.call(), lambda connection: connection.execute(same).rowcount) == 1


def test_moments_keep_their_microseconds_and_zone(database: Database) -> None:
    moment = datetime(2026, 11, 30, 23, 59, 59, 999999, tzinfo=timezone(timedelta(hours=-7)))
    new = counters.call()
    row = insert(space).values(space_id=new.space, root_count=0, created_at=moment)
    database.write(new, lambda connection: connection.execute(row))
    query = select(space.c.created_at).where(space.c.space_id == new.space)
    found = database.read(new, lambda connection: connection.execute(query).scalar_one())
    assert (found, found.utcoffset()) == (moment, timedelta(0))
    plain = query.where(space.c.created_at == moment.replace(tzinfo=None))
    with pytest.raises(Exception, match="aware"):
        database.read(new, lambda connection: connection.execute(plain))


def test_units_leave_room_in_the_pool_for_those_who_ask_it(database_url: str) -> None:
    database = Database.open(database_url, pool_size=1)
    database.write(counters.call(), lambda _: database.ping(counters.call()))
    # Two more than there are units, as for a change of the schema beside a probe.
    with database.engine.connect() as one, database.engine.connect() as other:
        assert [each.execute(text("SELECT 1")).scalar_one() for each in (one, other)] == [1, 1]
    database.close()


def test_a_unit_begins_outside_of_what_the_one_before_left_open(database_url: str) -> None:
    database = Database.open(database_url, pool_size=1)
    schema.prepare(database, counters.call())
    space_id = counters.started(database)
    begin = "BEGIN" if database.engine.dialect.name == "mysql" else "BEGIN IMMEDIATE"

    def leave_open(connection: Connection) -> None:
        connection.exec_driver_sql(begin)
        counters.add(connection, space_id)

    database.read(counters.call(), leave_open)
    other = Database.open(database_url, pool_size=1)
    assert other.write(counters.call(), lambda connection: counters.add(connection, space_id)) == 1
    assert counters.stored(database, space_id) == 1
    other.close()
    database.close()


@pytest.mark.mariadb
def test_units_send_no_needless_statement(mariadb_server: MariaDb, mariadb_url: str) -> None:
    database = Database.open(mariadb_url, pool_size=1)
    database.ping(counters.call())
    thread = database.read(
        counters.call(), lambda connection: connection.execute(text("SELECT connection_id()")).scalar()
    )
    mariadb_server.execute("SET GLOBAL log_output = 'TABLE'")
    mariadb_server.execute("TRUNCATE mysql.general_log")
    mariadb_server.execute("SET GLOBAL general_log = 1")
    try:
        database.read(counters.call(5), lambda connection: connection.execute(text("SELECT 17")))
        database.write(counters.call(5), lambda connection: connection.execute(text("SELECT 18")))
    finally:
        mariadb_server.execute("SET GLOBAL general_log = 0")
    rows = mariadb_server.execute(
        f"SELECT CONVERT(argument USING utf8mb4) AS said FROM mysql.general_log WHERE thread_id = {thread}"
    )
    assert [row["said"] for row in rows] == ["SELECT 17", "BEGIN", "SELECT 18", "COMMIT"]
    database.close()
