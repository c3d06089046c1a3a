"""Where bare servers keep things: one table by the driver alone, each commit on disk before it is told."""

import sqlite3
from collections.abc import Sequence
from typing import Any, Protocol
from urllib.parse import urlsplit

import pymysql

Row = tuple[Any, ...]


class Log(Protocol):
    """A table that only grows."""

    def store(self, rows: Sequence[Row]) -> None:
        """Stores rows and commits."""


def is_sqlite(url: str) -> bool:
    """Tells which of the two kinds of URL this is: ``sqlite:///FILE`` or ``mysql://USER:PASSWORD@HOST:PORT/NAME``."""
    return url.startswith("sqlite:")


def connect_mysql(url: str, *, autocommit: bool) -> Any:
    """Returns a connection of PyMySQL."""
    parts = urlsplit(url)
    return pymysql.connect(
        host=parts.hostname or "127.0.0.1",
        port=parts.port or 3306,
        user=parts.username or "root",
        password=parts.password or "",
        database=parts.path[1:],
        charset="utf8mb4",
        autocommit=autocommit,
    )


def connect_sqlite(url: str) -> sqlite3.Connection:
    """Returns a connection that any one thread at a time may use, and that begins nothing by itself."""
    return sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, check_same_thread=False)


def new_log(url: str, table: str, columns: str) -> Log:
    """Returns an empty table; ``columns`` are its definition, with ``{text}`` for the type of long text."""
    return _SqliteLog(url, table, columns) if is_sqlite(url) else _MySqlLog(url, table, columns)


class _MySqlLog:
    def __init__(self, url: str, table: str, columns: str) -> None:
        self._table = table
        self._connection = connect_mysql(url, autocommit=False)
        with self._connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {table}")
            cursor.execute(f"CREATE TABLE {table} ({columns.format(text='LONGTEXT')})")

    def store(self, rows: Sequence[Row]) -> None:
        places = ", ".join(["%s"] * len(rows[0]))
        with self._connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {self._table} VALUES ({places})", rows)
        self._connection.commit()


class _SqliteLog:
    def __init__(self, url: str, table: str, columns: str) -> None:
        self._table = table
        self._connection = connect_sqlite(url)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute(f"DROP TABLE IF EXISTS {table}")
        self._connection.execute(f"CREATE TABLE {table} ({columns.format(text='TEXT')})")

    def store(self, rows: Sequence[Row]) -> None:
        places = ", ".join(["?"] * len(rows[0]))
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(f"INSERT INTO {self._table} VALUES ({places})", rows)
        self._connection.execute("COMMIT")
