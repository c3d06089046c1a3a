"""The program ``ramet-server``, that kills itself at a chosen step of its work with the database.

A step is the sending of a statement, or the return of a COMMIT. They are counted from SIGUSR1 on, so that what
a test prepares first does not count. The number of the fatal step comes in the variable ``DOOMED_AT``.
"""

import os
import signal
import sqlite3
import sys
from typing import Any

from pymysql.constants import SERVER_STATUS

from ramet_server.commands import main
from ramet_server.database.mysql_connection import RametConnection

# What servers ask for their own sake, at moments that no test chooses.
_NOT_COUNTED = ("SELECT 1", "SELECT ?")


class Doom:
    """Counts steps, and ends the process at the fatal one as a crash does."""

    def __init__(self, at: int) -> None:
        self._left = at
        self._armed = False
        signal.signal(signal.SIGUSR1, self._arm)

    def _arm(self, *_: object) -> None:
        self._armed = True

    def step(self) -> None:
        """Counts one step."""
        if not self._armed:
            return
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def statement(self, sql: object) -> None:
        """Counts the sending of a statement."""
        if str(sql) not in _NOT_COUNTED:
            self.step()


def doom_mysql(doom: Doom) -> None:
    """Counts the steps of connections to MySQL; statements that travel together are sent as one."""
    driver: Any = RametConnection
    query, commit, send, next_rows = driver.query, driver.commit, driver.send, driver.next_rows
    committing = False

    def counted_query(self: Any, sql: Any, unbuffered: bool = False) -> Any:
        doom.statement(sql.decode("utf-8", "replace") if isinstance(sql, bytes | bytearray) else sql)
        return query(self, sql, unbuffered)

    def counted_commit(self: Any) -> None:
        doom.step()
        commit(self)
        doom.step()

    def counted_send(self: Any, text: str) -> None:
        nonlocal committing
        doom.statement(text)
        committing = text.endswith(("COMMIT", "COMMIT; END"))
        send(self, text)

    def counted_next_rows(self: Any) -> Any:
        rows = next_rows(self)
        # The COMMIT is the last of those that travel together.
        if committing and not self.server_status & SERVER_STATUS.SERVER_MORE_RESULTS_EXISTS:
            doom.step()
        return rows

    driver.query, driver.commit, driver.send, driver.next_rows = (
        counted_query,
        counted_commit,
        counted_send,
        counted_next_rows,
    )


def doom_sqlite(doom: Doom) -> None:
    """Counts the steps of SQLite connections."""
    connect = sqlite3.dbapi2.connect

    class CountedCursor(sqlite3.Cursor):
        def execute(self, sql: str, *more: Any) -> "CountedCursor":
            doom.statement(sql)
            super().execute(sql, *more)
            if sql == "COMMIT":
                doom.step()
            return self

        def executemany(self, sql: str, *more: Any) -> "CountedCursor":
            doom.statement(sql)
            super().executemany(sql, *more)
            return self

    class CountedConnection(sqlite3.Connection):
        def cursor(self, *_: Any) -> Any:
            return super().cursor(CountedCursor)

        def execute(self, sql: str, *more: Any) -> sqlite3.Cursor:
            cursor: CountedCursor = self.cursor()
            return cursor.execute(sql, *more)

        def executemany(self, sql: str, *more: Any) -> sqlite3.Cursor:
            cursor: CountedCursor = self.cursor()
            return cursor.executemany(sql, *more)

        def commit(self) -> None:
            doom.step()
            super().commit()
            doom.step()

    def counted_connect(*arguments: Any, **more: Any) -> Any:
        return connect(*arguments, **more, factory=CountedConnection)

    # Where SQLAlchemy looks it up.
    sqlite3.dbapi2.connect = counted_connect


if __name__ == "__main__":
    chosen = Doom(int(os.environ["DOOMED_AT"]))
    doom_mysql(chosen)
    doom_sqlite(chosen)
    sys.exit(main(prog_name="ramet-server"))
