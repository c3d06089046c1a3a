"""What was acknowledged is there after the server ends, by a signal or by a crash."""

import asyncio
from pathlib import Path

import grpc
import pytest

from ramet.session.v1 import session_pb2, session_pb2_grpc
from tests.harness.server import ServerProcess

WRITERS = 10


@pytest.mark.parametrize("crash", [False, True], ids=["drain", "crash"])
async def test_every_acknowledged_record_survives_the_end_of_the_server(
    tmp_path: Path, database_url: str, crash: bool
) -> None:
    settings = {"RAMET_DATABASE_URL": database_url}
    acknowledged: dict[str, int] = {}
    enough = asyncio.Event()
    codes: set[grpc.StatusCode] = set()

    async def write(storage: "session_pb2_grpc.SessionStorageAsyncStub", session_id: str) -> None:
        record = session_pb2.Record(role=session_pb2.ROLE_USER, content="hi")
        request = session_pb2.AppendRecordsRequest(session_id=session_id, records=[record])
        try:
            await storage.PutSession(session_pb2.PutSessionRequest(session=session_pb2.Session(id=session_id)))
            while True:
                reply = await storage.AppendRecords(request)
                acknowledged[session_id] = reply.seqs[0]
                if sum(acknowledged.values()) >= 100:
                    enough.set()
        except grpc.aio.AioRpcError as error:
            codes.add(error.code())

    with ServerProcess(tmp_path, settings) as server:
        async with grpc.aio.insecure_channel(server.address) as channel:
            storage: session_pb2_grpc.SessionStorageAsyncStub = session_pb2_grpc.SessionStorageStub(channel)
            writers = [asyncio.create_task(write(storage, f"session-{n}")) for n in range(WRITERS)]
            await asyncio.wait_for(enough.wait(), 60)
            if crash:
                await asyncio.to_thread(server.kill)
            else:
                assert await asyncio.to_thread(server.terminate) == 0
            await asyncio.gather(*writers)
    assert codes == {grpc.StatusCode.UNAVAILABLE}

    with ServerProcess(tmp_path, settings) as server:
        async with grpc.aio.insecure_channel(server.address) as channel:
            storage = session_pb2_grpc.SessionStorageStub(channel)
            for session_id, seq in acknowledged.items():
                session = await storage.GetSession(session_pb2.GetSessionRequest(session_id=session_id))
                # A crash may cut one reply of each writer after its commit; a drain cuts none.
                assert seq <= session.head_seq <= seq + crash
        assert await asyncio.to_thread(server.terminate) == 0
