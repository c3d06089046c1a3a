"""Deadlines and cancellations that reach the database: what nobody waits for any more holds nothing."""

import asyncio
from pathlib import Path

import grpc
import pymysql
import pytest

from ramet.session.v1 import session_pb2, session_pb2_grpc
from ramet_server.serving.settings import Settings
from tests.harness.mariadb import MariaDb
from tests.harness.server import running_server


def _append() -> session_pb2.AppendRecordsRequest:
    record = session_pb2.Record(role=session_pb2.ROLE_USER, content="hi")
    return session_pb2.AppendRecordsRequest(session_id="main", records=[record])


@pytest.mark.mariadb
async def test_calls_that_wait_for_a_lock_end_at_their_deadline_and_free_their_threads(
    mariadb_server: MariaDb, mariadb_url: str
) -> None:
    with running_server(mariadb_url, settings=Settings(pool_size=4, log_level="error")) as address:
        async with grpc.aio.insecure_channel(address) as channel:
            storage = session_pb2_grpc.SessionStorageStub(channel)
            await storage.PutSession(session_pb2.PutSessionRequest(session=session_pb2.Session(id="main")))
            holder = pymysql.connect(
                unix_socket=str(mariadb_server.socket), user="root", database=mariadb_url.rpartition("/")[2]
            )
            with holder, holder.cursor() as cursor:
                cursor.execute("SELECT session_id FROM session FOR UPDATE")
                # More than there are threads: some end in a database wait, some in the queue.
                late = [asyncio.ensure_future(storage.AppendRecords(_append(), timeout=1.0)) for _ in range(8)]
                left = [asyncio.ensure_future(storage.AppendRecords(_append())) for _ in range(8)]
                errors = await asyncio.gather(*late, return_exceptions=True)
                assert {error.code() for error in errors if isinstance(error, grpc.aio.AioRpcError)} == {
                    grpc.StatusCode.DEADLINE_EXCEEDED
                }
                for call in left:
                    call.cancel()
                # The lock is still held, and yet the threads are free for others.
                got = await storage.GetSession(session_pb2.GetSessionRequest(session_id="main"), timeout=10)
                assert got.head_seq == 0
            after = await storage.AppendRecords(_append(), timeout=10)
            # Nothing that was given up took effect later.
            assert list(after.seqs) == [1]


async def test_cancelled_write_on_sqlite_frees_the_file_for_the_next(tmp_path: Path) -> None:
    with running_server(f"sqlite:///{tmp_path}/ramet.db", settings=Settings(log_level="error")) as address:
        async with grpc.aio.insecure_channel(address) as channel:
            storage = session_pb2_grpc.SessionStorageStub(channel)
            await storage.PutSession(session_pb2.PutSessionRequest(session=session_pb2.Session(id="main")))
            calls = [asyncio.ensure_future(storage.AppendRecords(_append())) for _ in range(50)]
            for call in calls[::2]:
                call.cancel()
            kept = await asyncio.gather(*calls[1::2])
            assert len({seq for reply in kept for seq in reply.seqs}) == 25
