"""MySQL 8 and MariaDB, through PyMySQL."""

import hashlib
import inspect
import logging
import math
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import pymysql
import pymysql.cursors
from pymysql.connections import Connection as DriverConnection
from pymysql.constants import CLIENT
from pymysql.cursors import RE_INSERT_VALUES
from sqlalchemy import URL, Connection, text
from sqlalchemy.dialects.mysql.pymysql import MySQLDialect_pymysql
from sqlalchemy.exc import DBAPIError

from ramet_server.database.backend import RowsHeld, RowsMoved
from ramet_server.database.faults import Fault, classify
from ramet_server.database.literals import CONVERSIONS, literals
from ramet_server.database.mysql_connection import RametConnection, RametCursor
from ramet_server.database.prepared import Bound, Guard, Row, on_driver
from ramet_server.domain.call import Call
from ramet_server.domain.errors import DatabaseUnavailable

_log = logging.getLogger(__name__)

_CONNECT_TIMEOUT_S = 5
_KILL_TIMEOUT_S = 2
_LOCK_WAIT_S = 10
_SCHEMA_LOCK_WAIT_S = 120
_DEEPEST_RECURSION = 1_000_000
_LONGEST_GATHERED = 1024 * 1024
_LARGEST_NUMBER = 18_446_744_073_709_551_615

_BEGIN_SNAPSHOT = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
)

_SQL_MODE = (
    "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,"
    "ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
)


class MySqlBackend:
    """The policy for servers that speak MySQL's protocol."""

    # KILL QUERY may arrive between two statements and then hit the next one, whosoever that is.
    drops_interrupted = True

    def __init__(self, url: URL) -> None:
        self._url = url
        self._dialect = MySQLDialect_pymysql(dbapi=pymysql)
        _, named = self._dialect.create_connect_args(url)
        unknown = named.keys() - inspect.signature(DriverConnection.__init__).parameters.keys()
        if unknown:
            raise ValueError(f"The database URL has options that are not known: {', '.join(sorted(unknown))}.")

    def engine_options(self) -> dict[str, Any]:
        """Returns the dialect's keyword arguments of ``create_engine``."""
        return {
            "creator": lambda: self._connect(connect_timeout=_CONNECT_TIMEOUT_S),
            "pool_pre_ping": True,
            "pool_recycle": 1800,
        }

    def on_connect(self, driver: Any) -> None:
        """Sets up a new driver connection."""
        own = f"cte_max_recursion_depth = {_DEEPEST_RECURSION}"
        driver.is_mariadb = "MariaDB" in driver.get_server_info()
        if driver.is_mariadb:
            # MariaDB would turn a list of 1,000 ids into a join, and read every row of a space to answer it.
            own = f"max_recursive_iterations = {_DEEPEST_RECURSION}, in_predicate_conversion_threshold = 0"
            # The tags of a session come as one JSON text, which MariaDB would cut at this length.
            own += f", group_concat_max_len = {_LONGEST_GATHERED}"
        with driver.cursor() as cursor:
            # Said once more, because SQLAlchemy has just set the charset without a collation.
            cursor.execute("SET NAMES utf8mb4 COLLATE utf8mb4_bin")
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            cursor.execute(f"SET SESSION time_zone = '+00:00', innodb_lock_wait_timeout = {_LOCK_WAIT_S}, {own}")

    def is_usable(self, driver: RametConnection) -> bool:
        """Tells whether the server answers, or answered a moment ago."""
        try:
            driver.ping()
        except (pymysql.MySQLError, OSError):
            return False
        return True

    @contextmanager
    def turn(self, call: Call) -> Iterator[None]:  # noqa: ARG002 - the server orders its writers itself
        """Waits for nothing."""
        yield

    def begin_write(self, connection: Connection, call: Call) -> None:  # noqa: ARG002 - BEGIN never waits here
        """Opens a transaction; without one each statement commits by itself."""
        connection.exec_driver_sql("BEGIN")

    def begin_with(self, connection: Connection, call: Call, reads: Sequence[Bound]) -> list[Sequence[Row]]:  # noqa: ARG002 - BEGIN never waits here
        """Opens a transaction and reads, in one trip to the server."""
        texts = ["BEGIN", *_rendered(connection, reads)]
        return on_driver(connection, reads, lambda driver: _in_one_trip(driver, texts))[1:]

    def commit_with(self, connection: Connection, changes: Sequence[Bound], reached: Callable[[], None]) -> None:
        """Runs statements and the COMMIT, in one trip to the server, which stops at the first that fails."""
        texts = _rendered(connection, changes)

        def work(driver: RametConnection) -> None:
            if driver.is_mariadb:
                driver.run_block("", texts, reached)
            else:
                _in_one_trip(driver, [*texts, "COMMIT"], {len(changes): reached})

        on_driver(connection, changes, work)

    def commit_guarded(
        self,
        connection: Connection,
        call: Call,  # noqa: ARG002 - BEGIN never waits here
        guards: Sequence[Guard],
        changes: Sequence[Bound],
        reached: Callable[[], None],
    ) -> None:
        """Runs a transaction in one trip to the server, which stops where a guard fails."""
        queries = [guard.query for guard in guards]
        asked, changing = _rendered(connection, queries), _rendered(connection, changes)
        guarded = True

        def passed() -> None:
            nonlocal guarded
            guarded = False

        def work(driver: RametConnection) -> None:
            if driver.is_mariadb:
                # It knows no NOWAIT within a block; so nothing in this one waits for a lock.
                plain = [text.removesuffix(" NOWAIT") for text in asked]
                texts = ["START TRANSACTION", *map(_guard, guards, plain), *changing]
                driver.run_block("SET STATEMENT innodb_lock_wait_timeout = 0 FOR ", texts, reached)
            else:
                texts = ["BEGIN", *map(_guard, guards, asked), *changing, "COMMIT"]
                _in_one_trip(driver, texts, {1 + len(guards): passed, len(texts) - 1: reached})

        try:
            on_driver(connection, [*queries, *changes], work)
        except DBAPIError as error:
            fault = classify(error) if guarded else None
            if fault is Fault.RACE:
                raise RowsHeld from error
            if fault is Fault.OUT_OF_RANGE:
                raise RowsMoved from error
            raise

    def begin_snapshot(self, connection: Connection) -> None:
        """Opens a transaction whose reads all see the state at this moment."""
        on_driver(connection, (), lambda driver: _in_one_trip(driver, _BEGIN_SNAPSHOT))

    @contextmanager
    def schema_lock(self, connection: Connection, call: Call) -> Iterator[None]:
        """Holds a lock of the server's, which belongs to this connection and dies with it."""
        # Lock names hold for the whole server, and may have 64 characters.
        database = hashlib.sha256(str(self._url.database).encode()).hexdigest()[:32]
        remaining = call.remaining()
        wait_s = _SCHEMA_LOCK_WAIT_S if remaining is None else math.ceil(remaining)
        connection.execute(text("SET SESSION lock_wait_timeout = :seconds"), {"seconds": _SCHEMA_LOCK_WAIT_S})
        try:
            got = connection.execute(
                text("SELECT GET_LOCK(:name, :seconds)"), {"name": f"ramet schema {database}", "seconds": wait_s}
            ).scalar_one()
            if got != 1:
                call.check()
                raise DatabaseUnavailable("Another server is changing the schema; try again when it is done.")
            yield
        finally:
            # Closing the connection frees the lock even where RELEASE_LOCK could no longer be sent.
            connection.invalidate()

    def forget_deleted(self, connection: Connection) -> None:
        """Does nothing: logs and old pages are the server's own, and its operator's to keep short."""

    def interrupt(self, driver: Any, strike: int) -> None:
        """Stops the statement that runs on a driver connection, from another thread.

        Where the server cannot be asked, or did not obey twice, the socket is shut instead.
        """
        if strike <= 2:
            try:
                with (
                    self._connect(connect_timeout=_KILL_TIMEOUT_S, read_timeout=_KILL_TIMEOUT_S) as other,
                    other.cursor() as cursor,
                ):
                    cursor.execute(f"KILL QUERY {driver.thread_id():d}")
            except (pymysql.MySQLError, OSError) as fault:
                _log.warning("A statement could not be stopped by KILL QUERY: %s", fault)
            else:
                return
        channel: socket.socket | None = driver._sock  # noqa: SLF001 - no public way wakes a thread that waits
        if channel is not None:
            with suppress(OSError):
                channel.shutdown(socket.SHUT_RDWR)

    def _connect(self, **options: Any) -> RametConnection:
        positional, named = self._dialect.create_connect_args(self._url)
        named = {
            **named,
            "charset": "utf8mb4",
            # Reads need no transaction, and so no statement to end one; writes open theirs.
            "autocommit": True,
            # Lets several statements travel together; values never become SQL, so nobody else can add one.
            "client_flag": named.get("client_flag", 0) | CLIENT.MULTI_STATEMENTS,
            "sql_mode": _SQL_MODE,
            "cursorclass": RametCursor,
            "conv": CONVERSIONS,
            **options,
        }
        return RametConnection(*positional, **named)


def _in_one_trip(
    driver: RametConnection, texts: Sequence[str], told: Mapping[int, Callable[[], None]] | None = None
) -> list[Sequence[Row]]:
    """Sends all statements as one and returns the rows of each; ``told`` hears when their outcome is next.

    BEGIN, an insert and COMMIT took 0.13 ms so and 0.20 ms one by one, on an idle machine; each trip that is
    saved also saves two changes of processes, which cost most where the machine is busy.
    """
    driver.send(";".join(texts))
    rows: list[Sequence[Row]] = []
    for place in range(len(texts)):
        if told is not None and place in told:
            told[place]()
        rows.append(driver.next_rows())
    return rows


def _guard(guard: Guard, query: str) -> str:
    """Returns a statement that fails unless the query tells the number."""
    # No statement fails on a condition; a sum that is out of range does. SET has no rows to send.
    return f"SET @ramet_guard = {_LARGEST_NUMBER} + (({query}) <> {guard.number:d})"


def _rendered(connection: Connection, statements: Sequence[Bound]) -> list[str]:
    """Returns statements with their values in them, as the driver itself makes them."""
    of_row = literals(connection.connection.driver_connection)
    texts = []
    for bound in statements:
        if bound.stores:
            prefix, row, suffix = _parts(bound.text)
            texts.append(prefix + ",".join([row % of_row(values) for values in bound.parameters]) + suffix)
        else:
            texts.append(bound.text % of_row(bound.parameters[0]))
    return texts


@cache
def _parts(insert: str) -> tuple[str, str, str]:
    """Returns an insert as what is before, in and after the parentheses of a row's values."""
    found = RE_INSERT_VALUES.match(insert)
    if found is None:
        raise ValueError("An insert of rows must have a plain list of parameters.")
    prefix, row, suffix = found.groups()
    return prefix % (), row.rstrip(), (suffix or "") % ()
