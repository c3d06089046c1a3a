"""Loops of the driver alone: what the database gives on one connection, before any server is between."""

import importlib
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import pymysql

from benchmarks.comparing import Sample, Side
from benchmarks.parts.asyncmy_rows import connect as connect_asyncmy
from benchmarks.sides import Works
from benchmarks.stand import Stand

_TABLE = (
    "CREATE TABLE bare (session VARCHAR(64), seq BIGINT, role INT, content {text} NOT NULL, PRIMARY KEY (session, seq))"
)
_CONTENT = "x" * 500

Step = Callable[[], None]


class _Rows:
    """A table of records and one connection."""

    def __init__(self, connection: Any, place: str, text: str) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self._insert = f"INSERT INTO bare VALUES ({place}, {place}, {place}, {place})"
        self._one = f"SELECT content FROM bare WHERE session = {place} AND seq = {place}"
        self._all = f"SELECT session, seq, role, content FROM bare WHERE session = {place} ORDER BY seq"
        self._seq = 0
        self._cursor.execute(_TABLE.format(text=text))
        self.insert(1000, "history")

    def insert(self, count: int, session: str = "appended") -> None:
        rows = [(session, self._seq + place, 1, _CONTENT) for place in range(count)]
        self._seq += count
        self._cursor.executemany(self._insert, rows)
        self._connection.commit()

    def get(self) -> None:
        self._cursor.execute(self._one, ("history", 500))
        self._cursor.fetchall()

    def history(self) -> None:
        self._cursor.execute(self._all, ("history",))
        self._cursor.fetchall()


def works(stand: Stand) -> Works:
    """Returns the loops, each for every driver that is installed."""

    @cache
    def drivers() -> Mapping[str, _Rows]:
        return {name: _Rows(*connected) for name, connected in _connections(stand).items()}

    def loop(step_of: Callable[[_Rows], Step]) -> Callable[[int], Sequence[Side]]:
        return lambda _: [Side(name, _timed(step_of(rows), stand.seconds)) for name, rows in drivers().items()]

    return {
        "insert": loop(lambda rows: lambda: rows.insert(1)),
        "insert64": loop(lambda rows: lambda: rows.insert(64)),
        "by key": loop(lambda rows: rows.get),
        "history": loop(lambda rows: rows.history),
    }


def _timed(step: Step, seconds: float) -> Callable[[], Sample]:
    def measure() -> Sample:
        step()
        count, started = 0, time.perf_counter()
        cpu = time.process_time()
        while (elapsed := time.perf_counter() - started) < seconds:
            step()
            count += 1
        return Sample(count / elapsed, {"client": (time.process_time() - cpu) / count * 1e6})

    return measure


def _connections(stand: Stand) -> dict[str, tuple[Any, str, str]]:
    """Returns by name a connection, how a parameter is written, and the type of a long text."""
    url = stand.new_database()
    if stand.backend == "sqlite":
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        return {"sqlite3": (connection, "?", "TEXT")}
    found = {"PyMySQL": (_connect(pymysql, url), "%s", "LONGTEXT")}
    # Those with C code decode rows several times faster, and need a compiler, or a wheel, to be installed.
    with suppress(ImportError):
        found["mysqlclient"] = (_connect(importlib.import_module("MySQLdb"), stand.new_database()), "%s", "LONGTEXT")
    with suppress(ImportError):
        found["asyncmy"] = (connect_asyncmy(stand.new_database()), "%s", "LONGTEXT")
    return found


def _connect(driver: Any, url: str) -> Any:
    parts = urlsplit(url)
    return driver.connect(
        host="127.0.0.1", port=parts.port, user=parts.username, database=parts.path[1:], charset="utf8mb4"
    )
