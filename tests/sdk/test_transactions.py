"""Transactions from Python, against real servers: what is applied, what runs again, and what is found."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing

import grpc
import pytest
import pytest_asyncio

import ramet
from ramet.session.v1 import session_pb2
from tests.harness.muffle import Muffle
from tests.sdk.scripted import Fails, scripted


@pytest_asyncio.fixture
async def session_id(client: ramet.Client) -> str:
    """A new session."""
    return (await client.sessions.put_session()).id


@pytest_asyncio.fixture
async def muffled(address: str, space: str) -> AsyncIterator[tuple[Muffle, ramet.Client]]:
    """A client whose answers can be swallowed, and what swallows them."""
    with Muffle(address) as muffle:
        async with ramet.connect(muffle.address, space=space, timeout=5) as client:
            yield muffle, client


async def texts(client: ramet.Client, session_id: str) -> list[str]:
    return [record.content async for record in client.sessions.iter_records(session_id)]


async def written(client: ramet.Client, session_id: str) -> None:
    """Returns once a session has a record."""
    async with aclosing(client.sessions.watch_records(session_id, after_seq=0)) as watched:
        async for news in watched:
            if news.records:
                return


async def test_a_block_that_ends_well_commits(client: ramet.Client, session_id: str) -> None:
    async with client.sessions.transaction() as tx:
        made = await tx.put_session("made", label="Made", tags=["a"], system_prompt="Be brief.", expected_version=0)
        appended = await tx.append_records("made", [ramet.Record.user("one"), ramet.Record.user("two")], turn_delta=1)
        assert [record.content async for record in tx.iter_records("made")] == ["one", "two"]
        assert (await tx.list_records("made", descending=True, page_size=1)).records[0].content == "two"
        assert (await tx.put_memory(session_id, "remembered")).version == 1
        assert (await tx.put_insight(session_id, "hint")).version == 1
        assert (await tx.clear_insight(session_id)).content is None
        assert (await tx.put_system_prompt(session_id, "Be kind.")).version == 1
        prompt, insight = await tx.get_system_prompt(session_id), await tx.get_insight(session_id)
        assert (prompt.content, insight.version, (await tx.get_memory(session_id)).content) == (
            "Be kind.",
            2,
            "remembered",
        )
        assert (await tx.trim_records("made", 1)).kept_records == 1
        assert await tx.truncate_records("made", 1) == 3
        assert await texts(client, session_id) == []
        told = await tx.get_session("made")
    assert (made.label, appended.seqs, told.head_seq) == ("Made", (1, 2), 3)
    assert await client.sessions.get_session("made") == told
    assert (await client.sessions.get_system_prompt("made")).content == "Be brief."


async def test_a_block_that_raises_applies_nothing(client: ramet.Client, session_id: str) -> None:
    async def fail() -> None:
        async with client.sessions.transaction() as tx:
            await tx.append_records(session_id, [ramet.Record.user("never")])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await texts(client, session_id) == []


async def test_a_rollback_applies_nothing(client: ramet.Client, session_id: str) -> None:
    async with client.sessions.transaction() as tx:
        await tx.append_records(session_id, [ramet.Record.user("never")])
        await tx.rollback()
        with pytest.raises(RuntimeError, match="rolled back"):
            await tx.get_session(session_id)
    assert await texts(client, session_id) == []


async def test_a_cancelled_task_applies_nothing(client: ramet.Client, session_id: str) -> None:
    open_, for_ever = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with client.sessions.transaction() as tx:
            await tx.append_records(session_id, [ramet.Record.user("never")])
            open_.set()
            await for_ever.wait()

    task = asyncio.create_task(hold())
    await open_.wait()
    # Others are not held up, neither by the open transaction nor by its end.
    await client.sessions.append_records(session_id, [ramet.Record.user("other")])
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await texts(client, session_id) == ["other"]


async def test_a_read_that_finds_no_session_does_not_end_it(client: ramet.Client) -> None:
    async with client.sessions.transaction() as tx:
        with pytest.raises(ramet.NotFound) as caught:
            await tx.get_session("late")
        assert (caught.value.reason, caught.value.request_id) == ("SESSION_NOT_FOUND", tx.request_id)
        await tx.put_session("late")
    assert (await client.sessions.get_session("late")).version == 1


async def test_a_refused_step_ends_it_even_where_the_block_goes_on(client: ramet.Client, session_id: str) -> None:
    async def go_on() -> None:
        async with client.sessions.transaction() as tx:
            await tx.append_records(session_id, [ramet.Record.user("never")])
            with pytest.raises(ramet.Aborted):
                await tx.append_records(session_id, [ramet.Record.user("never")], expected_head_seq=7)

    with pytest.raises(ramet.Aborted) as caught:
        await go_on()
    assert (caught.value.reason, caught.value.metadata["step"]) == ("STALE_HEAD", "2")
    assert await texts(client, session_id) == []


async def test_steps_made_at_once_go_one_after_another(client: ramet.Client, session_id: str) -> None:
    async with client.sessions.transaction() as tx:
        records = [[ramet.Record.user(str(number))] for number in range(20)]
        appended = await asyncio.gather(*(tx.append_records(session_id, each) for each in records))
    assert sorted(each.seqs[0] for each in appended) == list(range(1, 21))


async def test_a_conflict_names_what_moved(client: ramet.Client, session_id: str) -> None:
    async def meet() -> None:
        async with client.sessions.transaction() as tx:
            await tx.get_memory(session_id)
            await client.sessions.put_memory(session_id, "moved")

    with pytest.raises(ramet.Aborted) as caught:
        await meet()
    assert caught.value.reason == "TRANSACTION_CONFLICT"
    assert caught.value.metadata == {"session_id": session_id, "moved": "memory", "read": "0", "current": "1"}


async def count_up(client: ramet.Client, session_id: str, times: int) -> None:
    async def count(tx: ramet.client.Transaction) -> int:
        counted = int((await tx.get_memory(session_id)).content or "0") + 1
        await tx.put_memory(session_id, str(counted))
        return counted

    for _ in range(times):
        await client.sessions.run_in_transaction(count, attempts=1000)


async def test_a_counter_of_eight_clients_ends_exact(address: str, space: str, session_id: str) -> None:
    clients = [ramet.connect(address, space=space) for _ in range(8)]
    await asyncio.gather(*(count_up(each, session_id, 4) for each in clients))
    assert (await clients[0].sessions.get_memory(session_id)).content == "32"
    for each in clients:
        await each.close()


async def test_a_run_that_keeps_meeting_others_gives_up(client: ramet.Client, session_id: str) -> None:
    runs = 0

    async def never(tx: ramet.client.Transaction) -> None:
        nonlocal runs
        runs += 1
        await tx.get_memory(session_id)
        await client.sessions.put_memory(session_id, str(runs))

    with pytest.raises(ramet.Aborted) as caught:
        await client.sessions.run_in_transaction(never, attempts=3)
    assert (runs, caught.value.reason) == (3, "TRANSACTION_CONFLICT")


async def test_what_a_function_raises_is_not_run_again(client: ramet.Client, session_id: str) -> None:
    runs = 0

    async def fails(tx: ramet.client.Transaction) -> None:
        nonlocal runs
        runs += 1
        await tx.append_records(session_id, [ramet.Record.user("never")], expected_head_seq=5)

    with pytest.raises(ramet.Aborted):
        await client.sessions.run_in_transaction(fails)
    assert runs == 1


async def test_a_commit_whose_reply_was_lost_is_found(
    muffled: tuple[Muffle, ramet.Client], client: ramet.Client, session_id: str
) -> None:
    muffle, behind = muffled
    runs = 0

    async def append(tx: ramet.client.Transaction) -> int:
        nonlocal runs
        runs += 1
        await tx.append_records(session_id, [ramet.Record.user(f"run {runs}")])
        muffle.silence()
        return runs

    task = asyncio.create_task(behind.sessions.run_in_transaction(append))
    await written(client, session_id)
    muffle.cut()
    assert await task == 1
    assert (runs, await texts(client, session_id)) == (1, ["run 1"])


async def test_a_block_whose_commit_lost_its_reply_ends_well(
    muffled: tuple[Muffle, ramet.Client], client: ramet.Client, session_id: str
) -> None:
    muffle, behind = muffled

    async def append() -> None:
        async with behind.sessions.transaction(request_id="lost") as tx:
            await tx.append_records(session_id, [ramet.Record.user("once")])
            muffle.silence()
        assert not tx.outcome_unknown

    task = asyncio.create_task(append())
    await written(client, session_id)
    muffle.cut()
    await task
    with pytest.raises(ramet.AlreadyCommitted) as caught:
        async with client.sessions.transaction(request_id="lost"):
            raise AssertionError("The block is not entered.")
    assert (caught.value.request_id, await texts(client, session_id)) == ("lost", ["once"])


async def test_a_connection_lost_before_the_commit_runs_the_function_again(
    muffled: tuple[Muffle, ramet.Client], client: ramet.Client, session_id: str
) -> None:
    muffle, behind = muffled
    runs = 0

    async def append(tx: ramet.client.Transaction) -> int:
        nonlocal runs
        runs += 1
        await tx.append_records(session_id, [ramet.Record.user(f"run {runs}")])
        if runs == 1:
            muffle.cut()
        return runs

    assert await behind.sessions.run_in_transaction(append) == 2
    assert await texts(client, session_id) == ["run 2"]


async def test_a_request_id_makes_a_whole_run_safe_to_repeat(client: ramet.Client, session_id: str) -> None:
    async def append(tx: ramet.client.Transaction) -> None:
        await tx.append_records(session_id, [ramet.Record.user("once")])

    await client.sessions.run_in_transaction(append, request_id="order-17")
    with pytest.raises(ramet.AlreadyCommitted):
        await client.sessions.run_in_transaction(append, request_id="order-17")
    assert await texts(client, session_id) == ["once"]


async def test_a_connection_lost_at_the_begin_is_made_anew() -> None:
    # The client's own gRPC tells so where a stream breaks while a message goes out.
    broken = Fails(grpc.StatusCode.INTERNAL)
    begun = session_pb2.TransactResponse(begun=session_pb2.TransactBegun(transaction_id="t"))
    committed = session_pb2.TransactResponse(committed=session_pb2.TransactCommitted(transaction_id="t"))
    async with scripted(Transact=[broken, begun, committed]) as script, ramet.connect(script.address) as client:
        async with client.sessions.transaction():
            pass
        steps = [request.WhichOneof("step") for request in script.heard("Transact")]
    assert steps == ["begin", "begin", "commit"]


async def test_no_server_is_told_soon_enough() -> None:
    async with ramet.connect("127.0.0.1:1", timeout=0.5) as client:
        with pytest.raises(ramet.Unavailable):
            async with client.sessions.transaction():
                raise AssertionError("The block is not entered.")


def test_blocking_transactions_commit_roll_back_and_run_again(address: str, space: str) -> None:
    with ramet.connect_blocking(address, space=space) as client:
        session_id = client.sessions.put_session().id
        with client.sessions.transaction() as tx:
            tx.append_records(session_id, [ramet.Record.user("one")])
            assert [record.content for record in tx.iter_records(session_id)] == ["one"]
        with client.sessions.transaction() as tx:
            tx.append_records(session_id, [ramet.Record.user("never")])
            tx.rollback()

        def fail(tx: ramet.client.BlockingTransaction) -> None:
            tx.append_records(session_id, [ramet.Record.user("never")])
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            client.sessions.run_in_transaction(fail)

        def count(tx: ramet.client.BlockingTransaction) -> int:
            counted = int(tx.get_memory(session_id).content or "0") + 1
            tx.put_memory(session_id, str(counted))
            return counted

        def count_up(_: int) -> None:
            for _ in range(3):
                client.sessions.run_in_transaction(count, attempts=1000)

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(count_up, range(4)))
        assert client.sessions.get_memory(session_id).content == "12"
        assert [record.content for record in client.sessions.iter_records(session_id)] == ["one"]
        assert client.sessions.run_in_transaction(count, request_id="thirteen") == 13
        with pytest.raises(ramet.AlreadyCommitted):
            client.sessions.run_in_transaction(count, request_id="thirteen")
