"""Connections of PyMySQL as Ramet uses them."""

import select
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

import pymysql
import pymysql.cursors
from pymysql.connections import Connection as DriverConnection
from pymysql.constants import COMMAND, SERVER_STATUS

from ramet_server.database.literals import literals
from ramet_server.database.prepared import Row
from ramet_server.database.rows import BUFFER_BYTES, Result, done

_FRESH_S = 1.0


class RametCursor(pymysql.cursors.Cursor):
    """A cursor that makes its values literals the short way, see ``literals``.

    The 27 values of a telemetry step took 44 us by the driver's own way, and 25 so.
    """

    def _mogrify(self, query: Any, args: Any) -> Any:
        if type(args) is tuple:
            return query % literals(self.connection)(args)
        if type(args) is dict:
            return query % dict(zip(args, literals(self.connection)(tuple(args.values())), strict=True))
        return super()._mogrify(query, args)  # type: ignore[misc]  # the stubs leave it out


class RametConnection(DriverConnection):
    """A driver connection that makes no trip to the server for nothing, and reads rows fast."""

    # The driver's own attributes, which its stubs leave out.
    server_status: int
    _sock: socket.socket | None
    _result: Result | None

    _used_at = 0.0
    _blocks = 0
    is_mariadb = False

    def rollback(self) -> None:
        """Rolls back where a transaction is open; the server tells with each answer whether one is."""
        self._used_at = time.monotonic()
        if self.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS:
            super().rollback()

    def connect(self, sock: Any = None) -> None:
        """Connects; what the server says later is read in larger pieces."""
        super().connect(sock)
        if self._sock is not None:
            self._rfile = self._sock.makefile("rb", BUFFER_BYTES)

    def _read_query_result(self, unbuffered: bool = False) -> Any:
        if unbuffered:
            return super()._read_query_result(unbuffered)  # type: ignore[misc] # left out of the stubs
        self._result = None
        result = Result(self)
        result.read()
        self._result = result
        if result.server_status is not None:
            self.server_status = result.server_status
        return result.affected_rows

    def send(self, text: str) -> None:
        """Sends statements, whose answers ``next_rows`` reads one by one; all of them, unless one is an error."""
        self._execute_command(COMMAND.COM_QUERY, text.encode(self.encoding))  # type: ignore[attr-defined]
        self._result = None

    def next_rows(self) -> Sequence[Row]:
        """Returns the rows of the next statement, none where it has none; raises the error that it met."""
        if done(self):
            return ()
        self._read_query_result()
        rows: Sequence[Row] = self._result.rows or () if self._result is not None else ()
        self._result = None
        return rows

    def run_block(self, prefix: str, texts: Sequence[str], reached: Callable[[], None]) -> None:
        """Runs statements without rows and a COMMIT as one block of MariaDB's, which stops at the first that fails.

        It answers once, where several statements answer one by one and wake us each time: an append alone took 0.86
        of the time so. ``reached`` is called where it fails and the COMMIT may be what failed.
        """
        self._blocks += 1
        reaching = f"SET @ramet_block = {self._blocks}"
        try:
            self.send(f"{prefix}BEGIN NOT ATOMIC {';'.join([*texts, reaching])};COMMIT; END")
            self.next_rows()
        except pymysql.MySQLError:
            if self._failed_block() == self._blocks:
                reached()
            raise

    def _failed_block(self) -> int | None:
        """Rolls back what a block that failed has left open; returns the number of the last that came to its COMMIT.

        The error itself does not tell. None where the server cannot be asked, which is told as a lost connection.
        """
        try:
            self.send("SELECT @ramet_block")
            ((number,),) = self.next_rows()
            super().rollback()
        except pymysql.MySQLError:
            return None
        return None if number is None else int(number)

    def ping(self, reconnect: Any = False) -> None:
        """Asks whether the server is there, unless it answered a moment ago and has not hung up since.

        That it hung up is seen here without a trip. A unit that begins by reading would notice it and start
        again, but one that is a single trip could only call its outcome unknown.
        """
        if time.monotonic() - self._used_at > _FRESH_S or self._sock is None or _has_news(self._sock):
            super().ping(reconnect)


def _has_news(channel: socket.socket) -> bool:
    """Tells whether something came that nobody asked for, such as the end of the connection."""
    watched = select.poll()
    watched.register(channel, select.POLLIN)
    return bool(watched.poll(0))
