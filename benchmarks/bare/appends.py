"""The bare append: records made durable by the driver alone, with commits that are shared.

It reads the message, stores its records by the next seqs, commits and answers with the seqs. It has
one table, knows its seqs from memory, and checks nothing: no locks, no versions, no request ids.

    python -m benchmarks.bare.appends --database mysql://root@127.0.0.1:3306/bare --listen 127.0.0.1:0
"""

import argparse
import asyncio
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol
from urllib.parse import urlsplit

import pymysql

from benchmarks.bare.serving import serve
from ramet.session.v1 import session_pb2 as pb

Row = tuple[str, int, int, str]

_TABLE = (
    "CREATE TABLE IF NOT EXISTS bare_record "
    "(session VARCHAR(128), seq BIGINT, role INT, content {text} NOT NULL, PRIMARY KEY (session, seq))"
)


class _Log(Protocol):
    def store(self, rows: Sequence[Row]) -> None:
        """Stores rows and commits."""


class _MySqlLog:
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._connection = pymysql.connect(
            host=parts.hostname or "127.0.0.1",
            port=parts.port or 3306,
            user=parts.username or "root",
            password=parts.password or "",
            database=parts.path[1:],
            charset="utf8mb4",
        )
        with self._connection.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS bare_record")
            cursor.execute(_TABLE.format(text="LONGTEXT"))

    def store(self, rows: Sequence[Row]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany("INSERT INTO bare_record VALUES (%s, %s, %s, %s)", rows)
        self._connection.commit()


class _SqliteLog:
    def __init__(self, url: str) -> None:
        self._connection = sqlite3.connect(
            url.removeprefix("sqlite:///"), isolation_level=None, check_same_thread=False
        )
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("DROP TABLE IF EXISTS bare_record")
        self._connection.execute(_TABLE.format(text="TEXT"))

    def store(self, rows: Sequence[Row]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany("INSERT INTO bare_record VALUES (?, ?, ?, ?)", rows)
        self._connection.execute("COMMIT")


class _Appends:
    """Calls that come while a commit is under way share the next one."""

    def __init__(self, log: _Log) -> None:
        self._log = log
        self._heads: dict[str, int] = defaultdict(int)
        self._waiting: list[tuple[bytes, asyncio.Future[bytes]]] = []
        self._busy = False
        # The one thread on which all is parsed, stored and answered.
        self._thread = ThreadPoolExecutor(1)

    async def behave(self, raw: bytes, _: object) -> bytes:
        """Appends what the message holds, and answers when it is on disk."""
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[bytes] = loop.create_future()
        self._waiting.append((raw, reply))
        if not self._busy:
            self._busy = True
            self._task = loop.create_task(self._work())
        return await reply

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            group, self._waiting = self._waiting, []
            answers = await loop.run_in_executor(self._thread, self._append, [raw for raw, _ in group])
            for (_, reply), answer in zip(group, answers, strict=True):
                if not reply.done():
                    reply.set_result(answer)
        self._busy = False

    def _append(self, group: Sequence[bytes]) -> list[bytes]:
        rows: list[Row] = []
        answers: list[bytes] = []
        for raw in group:
            request = pb.AppendRecordsRequest.FromString(raw)
            first = self._heads[request.session_id] + 1
            self._heads[request.session_id] += len(request.records)
            for seq, record in enumerate(request.records, first):
                rows.append((request.session_id, seq, record.role, record.content))
            reply = pb.AppendRecordsResponse(seqs=range(first, first + len(request.records)))
            answers.append(reply.SerializeToString())
        self._log.store(rows)
        return answers


def main() -> None:
    """Serves until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen", default="127.0.0.1:0")
    parser.add_argument("--database", required=True, help="sqlite:///FILE or mysql://USER:PASSWORD@HOST:PORT/NAME")
    arguments = parser.parse_args()
    url = arguments.database
    log = _SqliteLog(url) if url.startswith("sqlite:") else _MySqlLog(url)
    asyncio.run(serve(arguments.listen, _Appends(log).behave))


if __name__ == "__main__":
    main()
