"""Every call bears space and deadline, and its end reaches the server."""

import asyncio

import grpc
import pytest

import ramet
from ramet.session.v1 import session_pb2 as pb
from ramet.tree.v1 import tree_pb2
from tests.sdk.scripted import Fails, Hangs, Streams, scripted

SESSION = pb.Session(id="s", status=pb.SESSION_STATUS_ACTIVE)


async def test_a_call_has_ten_seconds_and_the_default_space_unless_told_otherwise() -> None:
    async with scripted(GetSession=SESSION) as server, ramet.connect(server.address) as client:
        await client.sessions.get_session("s")
        other = client.with_options(space="team-7", timeout=2.5)
        await other.sessions.get_session("s")
        assert (client.space, other.space) == ("default", "team-7")
        assert [each["ramet-space"] for each in server.metadata] == ["default", "team-7"]
        assert [round(left) for left in server.deadlines] in ([10, 2], [10, 3])
        assert str(server.metadata[0]["user-agent"]).startswith(f"ramet-python/{ramet.__version__} ")


async def test_no_answer_in_time_is_deadline_exceeded_with_the_request_id() -> None:
    async with scripted(PutMemory=Hangs()) as server, ramet.connect(server.address, timeout=0.3) as client:
        with pytest.raises(ramet.DeadlineExceeded) as caught:
            await client.sessions.put_memory("s", "m")
        assert caught.value.retryable
        assert caught.value.request_id == server.heard("PutMemory")[0].request_id
        await asyncio.wait_for(server.gone.wait(), 5)


async def test_retries_share_one_deadline() -> None:
    conflict = Fails(grpc.StatusCode.ABORTED, "WRITE_CONFLICT")
    async with scripted(PutMemory=[conflict, Hangs()]) as server, ramet.connect(server.address, timeout=1) as client:
        with pytest.raises(ramet.DeadlineExceeded):
            await client.sessions.put_memory("s", "m")
        first, second = server.deadlines
        assert second < first < 1


async def test_cancelling_the_task_cancels_the_call_on_the_server() -> None:
    async with scripted(GetSession=Hangs()) as server, ramet.connect(server.address) as client:
        task = asyncio.create_task(client.sessions.get_session("s"))
        await asyncio.wait_for(server.waiting.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.gone.wait(), 5)


async def test_a_timeout_of_the_caller_cancels_the_call_on_the_server() -> None:
    async with scripted(GetSession=Hangs()) as server, ramet.connect(server.address) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await client.sessions.get_session("s")
        await asyncio.wait_for(server.gone.wait(), 5)


async def test_leaving_a_stream_early_cancels_it_on_the_server() -> None:
    reply = pb.BatchGetSlotsResponse(sessions=[pb.SessionSlots(session_id="s")])
    async with scripted(BatchGetSlots=Streams((reply, Hangs()))) as server, ramet.connect(server.address) as client:
        slots = client.sessions.batch_get_slots(["s", "t"])
        assert (await anext(slots)).session_id == "s"
        await asyncio.wait_for(server.waiting.wait(), 5)
        await slots.aclose()
        await asyncio.wait_for(server.gone.wait(), 5)


async def test_the_services_may_have_an_address_each() -> None:
    async with scripted(GetSession=SESSION) as storage, scripted(GetNode=tree_pb2.Node(id="n")) as tree:
        async with ramet.connect(session=storage.address, tree=tree.address) as client:
            await client.sessions.get_session("s")
            await client.tree.get_node("n")
        async with ramet.connect(tree=tree.address) as client:
            await client.tree.get_node("n")
            with pytest.raises(RuntimeError, match="no address of the session service"):
                await client.sessions.get_session("s")


async def test_a_closed_client_says_so() -> None:
    async with scripted(GetSession=SESSION) as server:
        client = ramet.connect(server.address)
        await client.sessions.get_session("s")
        await client.close()
        await client.close()
        with pytest.raises(RuntimeError, match="closed"):
            await client.sessions.get_session("s")


async def test_a_client_used_from_a_second_loop_says_so() -> None:
    async with scripted(GetSession=SESSION) as server, ramet.connect(server.address) as client:
        await client.sessions.get_session("s")

        async def use() -> None:
            await client.sessions.get_session("s")

        with pytest.raises(RuntimeError, match="another event loop"):
            await asyncio.to_thread(asyncio.run, use())


def test_an_address_is_required() -> None:
    with pytest.raises(ramet.InvalidArgument, match="address"):
        ramet.connect()


async def test_a_method_unknown_to_the_server_is_unimplemented() -> None:
    async with scripted(GetSession=SESSION) as server, ramet.connect(server.address) as client:
        with pytest.raises(ramet.Unimplemented):
            await client.tree.get_node("n")
