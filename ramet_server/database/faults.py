"""The one room that knows drivers' error numbers, and what each means to Ramet."""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto

import pymysql
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from ramet_server.domain.errors import DatabaseUnavailable, Internal, RametError, TooLarge, WriteConflict

_log = logging.getLogger(__name__)


class Fault(Enum):
    """What a driver's error means."""

    DUPLICATE = auto()
    """A unique key is taken."""
    RACE = auto()
    """Others stand in the way; nothing was changed and another try may succeed."""
    OUT_OF_RANGE = auto()
    """A number is beyond its type, which only a guard brings about."""
    LOST = auto()
    """The connection broke."""
    INTERRUPTED = auto()
    """The statement was stopped from outside."""
    AWAY = auto()
    """The database cannot be reached, or does not let this server in."""
    NO_WRITES = auto()
    """The database takes no writes: read only, or its disk is full."""
    TOO_LARGE = auto()
    """A statement or row is larger than the database takes."""
    OTHER = auto()
    """Anything else, which is a fault of ours."""


_MYSQL: dict[int, Fault] = {
    1062: Fault.DUPLICATE,  # duplicate entry
    1586: Fault.DUPLICATE,  # the same, with the key's name
    1205: Fault.RACE,  # lock wait timeout
    1213: Fault.RACE,  # deadlock; in clusters also a failed certification, at COMMIT
    1020: Fault.RACE,  # record changed since last read
    3572: Fault.RACE,  # NOWAIT met a lock (MySQL; MariaDB says 1205)
    3101: Fault.RACE,  # group replication rolled the transaction back at COMMIT
    1690: Fault.OUT_OF_RANGE,  # value is out of range
    1053: Fault.LOST,  # server shutdown in progress
    1152: Fault.LOST,  # aborted connection
    1158: Fault.LOST,  # error reading packets
    1159: Fault.LOST,  # timeout reading packets
    1160: Fault.LOST,  # error writing packets
    1161: Fault.LOST,  # timeout writing packets
    1927: Fault.LOST,  # connection was killed (MariaDB)
    2006: Fault.LOST,  # server has gone away
    2013: Fault.LOST,  # lost connection during query
    2014: Fault.LOST,  # commands out of sync, after a broken answer
    2055: Fault.LOST,  # lost connection, with the system's error
    3169: Fault.LOST,  # session was killed (MySQL)
    4031: Fault.LOST,  # disconnected for inactivity (MySQL)
    1317: Fault.INTERRUPTED,  # query execution was interrupted
    1969: Fault.INTERRUPTED,  # max_statement_time exceeded (MariaDB)
    3024: Fault.INTERRUPTED,  # max_execution_time exceeded (MySQL)
    1040: Fault.AWAY,  # too many connections
    1044: Fault.AWAY,  # access denied to the database
    1045: Fault.AWAY,  # access denied for the user
    1047: Fault.AWAY,  # node not ready (Galera)
    1049: Fault.AWAY,  # unknown database
    1142: Fault.AWAY,  # command denied to the user
    1143: Fault.AWAY,  # column denied to the user
    1227: Fault.AWAY,  # the user lacks a privilege
    1129: Fault.AWAY,  # host is blocked
    1130: Fault.AWAY,  # host is not allowed
    1203: Fault.AWAY,  # too many connections of the user
    1226: Fault.AWAY,  # the user's resource limit
    2002: Fault.AWAY,  # cannot connect through the socket
    2003: Fault.AWAY,  # cannot connect
    2005: Fault.AWAY,  # unknown host
    1021: Fault.NO_WRITES,  # disk full
    1114: Fault.NO_WRITES,  # table is full
    1290: Fault.NO_WRITES,  # running with --read-only
    1792: Fault.NO_WRITES,  # read-only transaction
    1836: Fault.NO_WRITES,  # running in read-only mode
    3100: Fault.NO_WRITES,  # group replication refuses writes
    1118: Fault.TOO_LARGE,  # row size
    1153: Fault.TOO_LARGE,  # packet bigger than max_allowed_packet
}

_SQLITE_DUPLICATES = {
    sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY,
    sqlite3.SQLITE_CONSTRAINT_UNIQUE,
    sqlite3.SQLITE_CONSTRAINT_ROWID,
}

_SQLITE: dict[int, Fault] = {
    sqlite3.SQLITE_BUSY: Fault.RACE,
    sqlite3.SQLITE_LOCKED: Fault.RACE,
    sqlite3.SQLITE_INTERRUPT: Fault.INTERRUPTED,
    sqlite3.SQLITE_CANTOPEN: Fault.AWAY,
    sqlite3.SQLITE_IOERR: Fault.AWAY,
    sqlite3.SQLITE_NOTADB: Fault.AWAY,
    sqlite3.SQLITE_CORRUPT: Fault.AWAY,
    sqlite3.SQLITE_PERM: Fault.AWAY,
    sqlite3.SQLITE_FULL: Fault.NO_WRITES,
    sqlite3.SQLITE_READONLY: Fault.NO_WRITES,
    sqlite3.SQLITE_TOOBIG: Fault.TOO_LARGE,
}

_PRIMARY_CODE = 0xFF
"""The bits of an extended SQLite code that tell its kind."""


def classify(error: DBAPIError | PoolTimeout) -> Fault:
    """Returns what an error of the database means."""
    if isinstance(error, PoolTimeout):
        return Fault.AWAY
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", 0)
        if code in _SQLITE_DUPLICATES:
            return Fault.DUPLICATE
        return _SQLITE.get(code & _PRIMARY_CODE, Fault.OTHER)
    if isinstance(cause, pymysql.MySQLError):
        code = cause.args[0] if cause.args else None
        known = _MYSQL.get(code) if isinstance(code, int) else None
        if known is not None:
            return known
    # A closed connection has no number in PyMySQL, only a text that SQLAlchemy knows.
    return Fault.LOST if error.connection_invalidated else Fault.OTHER


def is_lost(cause: BaseException | None) -> bool:
    """Tells whether a driver's error means that the connection broke."""
    return isinstance(cause, pymysql.MySQLError) and bool(cause.args) and _MYSQL.get(cause.args[0]) is Fault.LOST


def is_duplicate(error: DBAPIError) -> bool:
    """Tells whether a statement failed because a unique key is taken."""
    return classify(error) is Fault.DUPLICATE


def refusal(error: DBAPIError | PoolTimeout) -> RametError:
    """Returns what a caller is told, and logs the whole error, without the statement's parameters."""
    fault = classify(error)
    if fault is Fault.RACE:
        return WriteConflict("Other transactions stood in the way; try again.")
    if fault in (Fault.OTHER, Fault.DUPLICATE, Fault.OUT_OF_RANGE):
        _log.error("The database refused a statement.", exc_info=error)
        return Internal("The server met a fault.")
    if fault is Fault.TOO_LARGE:
        _log.warning("A statement is larger than the database takes: %s", error)
        return TooLarge("The request is larger than the database takes.")
    _log.warning("The database is unavailable: %s", error)
    if fault is Fault.NO_WRITES:
        return DatabaseUnavailable("The database takes no writes at the moment.")
    return DatabaseUnavailable("The database is not available at the moment.")


@contextmanager
def translated() -> Iterator[None]:
    """Turns each error of the database into what a caller is told."""
    try:
        yield
    except (DBAPIError, PoolTimeout) as error:
        raise refusal(error) from error
