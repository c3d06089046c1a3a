"""What is safe to repeat is repeated, with the same request id; the rest is told at once."""

import asyncio

import grpc
import pytest

import ramet
from ramet.session.v1 import session_pb2 as pb
from ramet.tree.v1 import tree_pb2
from tests.sdk.scripted import Fails, Streams, scripted

AWAY = Fails(grpc.StatusCode.UNAVAILABLE, "DATABASE_UNAVAILABLE")
SESSION = pb.Session(id="s", status=pb.SESSION_STATUS_ACTIVE)


async def test_a_read_comes_through_after_two_unavailable_answers() -> None:
    async with scripted(GetSession=[AWAY, AWAY, SESSION]) as server, ramet.connect(server.address) as client:
        assert (await client.sessions.get_session("s")).id == "s"
        assert len(server.heard("GetSession")) == 3


async def test_a_write_is_repeated_with_the_one_request_id_that_it_began_with() -> None:
    done = pb.AppendRecordsResponse(seqs=[1], session=SESSION)
    async with scripted(AppendRecords=[AWAY, AWAY, done]) as server, ramet.connect(server.address) as client:
        assert (await client.sessions.append_records("s", [ramet.Record.user("Hi")])).seqs == (1,)
        first, *others = server.heard("AppendRecords")
        assert len(first.request_id) == 32
        assert others == [first, first]


async def test_a_large_write_is_repeated_too() -> None:
    done = pb.AppendRecordsResponse(seqs=[1])
    record = ramet.Record.user("長" * 1_300_000)
    async with scripted(AppendRecords=[AWAY, AWAY, done]) as server, ramet.connect(server.address) as client:
        await client.sessions.append_records("s", [record] * 4)
        assert [len(request.records) for request in server.heard("AppendRecords")] == [4, 4, 4]


async def test_the_tree_is_retried_as_well() -> None:
    async with scripted(GetNode=[AWAY, AWAY, tree_pb2.Node(id="n")]) as server, ramet.connect(server.address) as client:
        assert (await client.tree.get_node("n")).id == "n"


async def test_a_call_that_a_server_cancels_as_it_ends_is_repeated() -> None:
    cut = Fails(grpc.StatusCode.CANCELLED)
    done = pb.AppendRecordsResponse(seqs=[1], session=SESSION)
    async with scripted(AppendRecords=[cut, done]) as server, ramet.connect(server.address) as client:
        assert (await client.sessions.append_records("s", [ramet.Record.user("Hi")])).seqs == (1,)
        first, second = server.heard("AppendRecords")
        assert first == second


async def test_a_stream_is_repeated_before_its_first_message() -> None:
    reply = pb.BatchGetSlotsResponse(sessions=[pb.SessionSlots(session_id="s", memory=pb.Slot(content="m"))])
    async with scripted(BatchGetSlots=[AWAY, AWAY, reply]) as server, ramet.connect(server.address) as client:
        slots = [slots async for slots in client.sessions.batch_get_slots(["s"])]
        assert [(each.session_id, each.memory and each.memory.content) for each in slots] == [("s", "m")]
        assert len(server.heard("BatchGetSlots")) == 3


async def test_a_stream_that_breaks_midway_raises_and_is_not_begun_anew() -> None:
    reply = pb.BatchGetSlotsResponse(sessions=[pb.SessionSlots(session_id="s")])
    broken = Fails(grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED", 0.01)
    async with scripted(BatchGetSlots=Streams((reply, broken))) as server, ramet.connect(server.address) as client:
        slots = client.sessions.batch_get_slots(["s", "t"])
        assert (await anext(slots)).session_id == "s"
        with pytest.raises(ramet.ResourceExhausted):
            await anext(slots)
        assert len(server.heard("BatchGetSlots")) == 1


async def test_a_server_that_stays_away_is_told_with_the_request_id() -> None:
    async with scripted(ArchiveSession=AWAY) as server, ramet.connect(server.address) as client:
        with pytest.raises(ramet.Unavailable) as caught:
            await client.sessions.archive_session("s")
        assert caught.value.reason == "DATABASE_UNAVAILABLE"
        assert caught.value.retryable
        assert caught.value.method == "ArchiveSession"
        assert {request.request_id for request in server.heard("ArchiveSession")} == {caught.value.request_id}
        assert len(server.heard("ArchiveSession")) == 5


async def test_no_server_at_all_is_unavailable_within_seconds() -> None:
    async with scripted(GetSession=SESSION) as server:
        pass
    async with ramet.connect(server.address) as client, asyncio.timeout(8):
        with pytest.raises(ramet.Unavailable) as caught:
            await client.sessions.get_session("s")
        assert caught.value.reason == ""


@pytest.mark.parametrize(
    "fault",
    [
        Fails(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD"),
        Fails(grpc.StatusCode.ABORTED, "STALE_HEAD"),
        Fails(grpc.StatusCode.RESOURCE_EXHAUSTED),
        Fails(grpc.StatusCode.INTERNAL, "INTERNAL"),
    ],
    ids=lambda fault: fault.reason or fault.code.name,
)
async def test_what_a_repetition_cannot_help_is_told_at_once(fault: Fails) -> None:
    async with scripted(AppendRecords=fault) as server, ramet.connect(server.address) as client:
        with pytest.raises(ramet.RametError) as caught:
            await client.sessions.append_records("s", [ramet.Record.user("Hi")])
        assert (caught.value.code, caught.value.reason) == (fault.code, fault.reason)
        assert len(server.heard("AppendRecords")) == 1


@pytest.mark.parametrize(
    "fault",
    [
        Fails(grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED", 0.05),
        Fails(grpc.StatusCode.ABORTED, "WRITE_CONFLICT"),
    ],
    ids=lambda fault: fault.reason,
)
async def test_overload_and_write_conflict_are_tried_again(fault: Fails) -> None:
    done = pb.AppendRecordsResponse(seqs=[1])
    async with scripted(AppendRecords=[fault, fault, done]) as server, ramet.connect(server.address) as client:
        began = asyncio.get_running_loop().time()
        await client.sessions.append_records("s", [ramet.Record.user("Hi")])
        first, *others = server.heard("AppendRecords")
        assert others == [first, first]
        assert asyncio.get_running_loop().time() - began >= 2 * 0.05


async def test_overload_that_outlasts_the_deadline_is_told_as_such_and_at_once() -> None:
    fault = Fails(grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED", 60.0)
    async with scripted(GetSession=fault) as server, ramet.connect(server.address, timeout=2) as client:
        with pytest.raises(ramet.ResourceExhausted) as caught:
            await client.sessions.get_session("s")
        assert caught.value.retry_after_s == 60.0
        assert len(server.heard("GetSession")) == 1
