"""The blocking client gives the same answers, from any thread, and cleans up behind itself."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

import ramet
from ramet.client.loop_thread import LoopThread
from ramet.session.v1 import session_pb2 as pb
from tests.sdk.scripted import Fails, Hangs, Scripted, scripted

SESSION = pb.Session(id="s", status=pb.SESSION_STATUS_ACTIVE)
THREAD = "ramet-blocking"


def page(first: int, last: int, token: str) -> pb.ListRecordsResponse:
    records = [pb.Record(seq=seq, role=pb.ROLE_USER, content=str(seq)) for seq in range(first, last + 1)]
    return pb.ListRecordsResponse(records=records, next_page_token=token)


@pytest.fixture
def server() -> Iterator[Scripted]:
    """A scripted server on a loop and thread of its own."""
    loop = LoopThread.acquire()
    answers = scripted(
        GetSession=SESSION,
        GetInsight=Hangs(),
        PutMemory=Fails(grpc.StatusCode.FAILED_PRECONDITION, "SESSION_ARCHIVED"),
        ListRecords=[page(1, 1000, "more"), page(1001, 1500, "rest"), Fails(grpc.StatusCode.NOT_FOUND, "GONE")],
    )
    yield loop.run(answers.__aenter__())
    loop.run(answers.__aexit__(None, None, None))
    loop.release()


def test_a_call_answers_and_errors_are_typed(server: Scripted) -> None:
    with ramet.connect_blocking(server.address, space="team-7") as client:
        assert client.sessions.get_session("s").id == "s"
        assert client.space == "team-7"
        with pytest.raises(ramet.FailedPrecondition) as caught:
            client.sessions.put_memory("s", "m")
        assert caught.value.reason == "SESSION_ARCHIVED"
    assert {each["ramet-space"] for each in server.metadata} == {"team-7"}


def test_an_iterator_yields_everything_before_it_raises(server: Scripted) -> None:
    with ramet.connect_blocking(server.address) as client:
        records = client.sessions.iter_records("s")
        assert [next(records).seq for _ in range(1500)] == list(range(1, 1501))
        with pytest.raises(ramet.NotFound):
            next(records)


def test_an_iterator_that_is_left_early_asks_for_no_more_pages(server: Scripted) -> None:
    with ramet.connect_blocking(server.address) as client:
        records = client.sessions.iter_records("s")
        assert next(records).seq == 1
        records.close()
        assert len(server.heard("ListRecords")) == 1


def test_threads_share_one_client(server: Scripted) -> None:
    with ramet.connect_blocking(server.address) as client, ThreadPoolExecutor(16) as threads:
        got = list(threads.map(lambda _: client.sessions.get_session("s").id, range(200)))
    assert got == ["s"] * 200


def test_another_space_over_the_same_connection(server: Scripted) -> None:
    with ramet.connect_blocking(server.address) as client:
        other = client.with_options(space="other", timeout=0.2)
        other.sessions.get_session("s")
        with pytest.raises(ramet.DeadlineExceeded):
            other.sessions.get_insight("s")


def test_a_closed_client_says_so_and_may_be_closed_again(server: Scripted) -> None:
    client = ramet.connect_blocking(server.address)
    client.close()
    client.close()
    with pytest.raises(RuntimeError, match="closed"):
        client.sessions.get_session("s")


def test_the_thread_ends_with_its_last_client() -> None:
    one, other = ramet.connect_blocking("127.0.0.1:1"), ramet.connect_blocking("127.0.0.1:1")
    assert [thread.name for thread in threading.enumerate()].count(THREAD) == 1
    one.close()
    assert THREAD in [thread.name for thread in threading.enumerate()]
    other.close()
    assert THREAD not in [thread.name for thread in threading.enumerate()]
    with pytest.raises(RuntimeError, match="closed"):
        one.sessions.get_session("s")


def test_waiting_on_its_own_loop_is_refused_rather_than_a_deadlock(server: Scripted) -> None:
    with ramet.connect_blocking(server.address) as client:

        async def misuse() -> None:
            client.sessions.get_session("s")

        with pytest.raises(RuntimeError, match="own loop"):
            client.loop_thread.run(misuse())


async def test_it_may_be_used_within_a_loop_of_the_callers() -> None:
    async with scripted(GetSession=SESSION) as server:
        with ramet.connect_blocking(server.address) as client:
            assert (await asyncio.to_thread(client.sessions.get_session, "s")).id == "s"
