"""The bare history: one query over Ramet's own tables by the driver alone, and the messages made of its rows.

It checks nothing, knows no spans of forks and no pages, and takes the first 1,000 records of a session.

    python -m benchmarks.bare.history --database mysql://root@127.0.0.1:3306/ramet --listen 127.0.0.1:0
"""

import argparse
import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from benchmarks.bare.serving import serve
from benchmarks.bare.stores import connect_mysql, connect_sqlite, is_sqlite
from ramet.session.v1 import session_pb2 as pb

_QUERY = """
SELECT r.seq, r.role, r.content, r.parts_json, r.tool_calls_json, r.tool_call_id, r.name, r.client_time,
    r.metadata_json, r.created_at, r.erased_at
FROM session AS s JOIN record AS r ON r.origin = s.origin
WHERE s.space_id = 'default' AND s.session_id = {place} AND r.seq BETWEEN s.floor_seq + 1 AND s.head_seq
ORDER BY r.seq LIMIT 1000
"""

_ROLES = {name.removeprefix("ROLE_"): number for name, number in pb.Role.items()}
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the driver gives plain datetimes in UTC
_MICROSECOND = timedelta(microseconds=1)

_THREADS = 8

Row = Sequence[Any]
Query = Callable[[str], Sequence[Row]]


def _mysql(url: str) -> Query:
    local = threading.local()

    def query(session_id: str) -> Sequence[Row]:
        if not hasattr(local, "connection"):
            local.connection = connect_mysql(url, autocommit=True)
        with local.connection.cursor() as cursor:
            cursor.execute(_QUERY.format(place="%s"), (session_id,))
            rows: Sequence[Row] = cursor.fetchall()
            return rows

    return query


def _sqlite(url: str) -> Query:
    local = threading.local()

    def query(session_id: str) -> Sequence[Row]:
        if not hasattr(local, "connection"):
            local.connection = connect_sqlite(url)
        found: list[Row] = local.connection.execute(_QUERY.format(place="?"), (session_id,)).fetchall()
        return found

    return query


def _timestamp(value: datetime | str) -> Timestamp:
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    seconds, microseconds = divmod((moment - _EPOCH) // _MICROSECOND, 1_000_000)
    return Timestamp(seconds=seconds, nanos=microseconds * 1000)


def _message(row: Row) -> pb.Record:
    seq, role, content, parts, calls, call_id, name, client_time, metadata, created_at, erased_at = row
    message = pb.Record(
        seq=seq,
        role=_ROLES[role],
        content=content,
        parts_json=parts or "",
        tool_call_id=call_id or "",
        name=name or "",
        metadata_json=metadata or "",
        created_at=_timestamp(created_at),
    )
    if calls is not None:
        for call in json.loads(calls):
            message.tool_calls.add(id=call["call_id"], name=call["name"], arguments_json=call["arguments_json"])
    if client_time is not None:
        message.client_time.FromJsonString(client_time)
    if erased_at is not None:
        message.erased_at.CopyFrom(_timestamp(erased_at))
    return message


class _Histories:
    def __init__(self, query: Query) -> None:
        self._query = query
        self._threads = ThreadPoolExecutor(_THREADS)

    async def behave(self, raw: bytes, _: object) -> bytes:
        """Answers with the history that the message asks for."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._list, raw)

    def _list(self, raw: bytes) -> bytes:
        request = pb.ListRecordsRequest.FromString(raw)
        records = [_message(row) for row in self._query(request.session_id)]
        return pb.ListRecordsResponse(records=records, head_seq=records[-1].seq).SerializeToString()


def main() -> None:
    """Serves until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen", default="127.0.0.1:0")
    parser.add_argument("--database", required=True, help="a database of Ramet's, as for its server")
    chosen = parser.parse_args()
    url = chosen.database
    histories = _Histories(_sqlite(url) if is_sqlite(url) else _mysql(url))
    asyncio.run(serve(chosen.listen, histories.behave))


if __name__ == "__main__":
    main()
