"""Watches from the SDK: they go on where they were, whatever becomes of the server, and end when they are left."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import grpc
import pytest

import ramet
from ramet.client import RecordNews, TreeChange, TreeChangeKind, TreeNews
from tests.harness.server import ServerProcess

Record = ramet.Record


async def read_through(news: object, seq: int) -> list[str]:
    """Reads news until a seq; returns the contents of all records."""
    told: list[str] = []
    async for each in news:  # type: ignore[attr-defined]  # an asynchronous iterator
        told += [record.content for record in each.records]
        if each.through_seq >= seq:
            return told
    raise AssertionError("a watch never ends by itself")


async def test_records_come_as_they_are_appended(client: ramet.Client) -> None:
    await client.sessions.put_session("main")
    await client.sessions.append_records("main", [Record.user("a"), Record.user("b")])
    everything, fresh = (client.sessions.watch_records("main", after_seq=seq) for seq in (0, None))
    assert await read_through(everything, 2) == ["a", "b"]
    assert await anext(fresh) == RecordNews((), 2)
    await client.sessions.append_records("main", [Record.user("c")])
    assert await read_through(fresh, 3) == await read_through(everything, 3) == ["c"]
    await client.sessions.truncate_records("main", 1)
    assert await anext(fresh) == RecordNews((), 4, rewound_to_seq=1)
    await client.sessions.delete_session("main")
    with pytest.raises(ramet.NotFound):
        await anext(fresh)
    await everything.aclose()


async def test_the_forest_is_followed_from_where_it_was_read(client: ramet.Client) -> None:
    await client.tree.create_session("a")
    page = await client.tree.get_tree()
    watch = client.tree.watch_tree(after_position=page.position)
    assert await anext(watch) == TreeNews((), 1)
    assert (await ramet.Orchestrator(client).read_tree()).position == 1
    await client.tree.create_session("b", parent_id="a", awaits_content=True)
    await client.sessions.put_session("b")
    await client.tree.move_node("b", parent_id=None)
    await client.tree.put_config("b", ramet.Config(skills=()))
    await client.tree.delete_node("b")
    told: list[TreeChange] = []
    while len(told) < 4:
        told += (await anext(watch)).changes
    kinds = [TreeChangeKind.CREATED, TreeChangeKind.MOVED, TreeChangeKind.UPDATED, TreeChangeKind.DELETED]
    assert [(change.position, change.kind, change.node_id) for change in told] == [
        (position, kind, "b") for position, kind in enumerate(kinds, start=2)
    ]
    assert all(change.changed_at is not None and change.changed_at.tzinfo is not None for change in told)
    assert await anext(client.tree.watch_tree()) == TreeNews((), 5)
    with pytest.raises(ramet.OutOfRange) as caught:
        await anext(client.tree.watch_tree(after_position=6))
    assert caught.value.metadata == {"head_position": "5"}
    await watch.aclose()


async def test_what_cannot_be_resumed_is_raised_at_once(client: ramet.Client) -> None:
    with pytest.raises(ramet.NotFound):
        await anext(client.sessions.watch_records("nobody"))
    await client.sessions.put_session("main")
    await client.sessions.append_records("main", [Record.user("a"), Record.user("b")])
    await client.sessions.trim_records("main", 1)
    with pytest.raises(ramet.OutOfRange) as caught:
        await anext(client.sessions.watch_records("main", after_seq=0))
    assert (caught.value.reason, caught.value.metadata) == ("BELOW_TRIM_FLOOR", {"floor_seq": "1"})


async def test_a_watch_outlives_the_deadline_of_calls(client: ramet.Client) -> None:
    await client.sessions.put_session("main")
    hurried = client.with_options(timeout=0.3)
    watch = hurried.sessions.watch_records("main")
    assert (await anext(watch)).through_seq == 0
    coming = asyncio.ensure_future(anext(watch))
    with pytest.raises(ramet.DeadlineExceeded):
        # A call of the same client, on which the deadline falls; it waits for what does not come.
        async for _ in hurried.telemetry.tail():
            pass
    await client.sessions.append_records("main", [Record.user("late")])
    assert [record.content for record in (await coming).records] == ["late"]
    await watch.aclose()


async def test_a_watch_goes_on_at_the_next_server_and_tells_where_there_is_none(
    database_url: str, tmp_path: Path
) -> None:
    with ServerProcess(tmp_path, {"RAMET_DATABASE_URL": database_url}) as server:
        settings = {"RAMET_DATABASE_URL": database_url, "RAMET_LISTEN": server.address}
        async with ramet.connect(server.address) as client:
            await client.sessions.put_session("main")
            watch = client.sessions.watch_records("main", after_seq=0)
            assert (await anext(watch)).through_seq == 0
            await client.sessions.append_records("main", [Record.user("before")])
            assert await read_through(watch, 1) == ["before"]
            coming = asyncio.ensure_future(anext(watch))
            assert await asyncio.to_thread(server.terminate) == 0
            with ServerProcess(tmp_path, settings) as next_server:
                await client.sessions.append_records("main", [Record.user("after")])
                first = await coming
                rest = [] if first.through_seq == 2 else await read_through(watch, 2)
                assert [record.content for record in first.records] + rest == ["after"]
                impatient = client.sessions.watch_records("main", patience_s=0.5)
                await anext(impatient)
                next_server.kill()
                with pytest.raises(ramet.Unavailable) as caught:
                    await anext(impatient)
                assert caught.value.code is grpc.StatusCode.UNAVAILABLE
            await watch.aclose()


async def test_a_closed_client_ends_its_watches(address: str, space: str) -> None:
    client = ramet.connect(address, space=space)
    await client.sessions.put_session("main")
    watch = client.sessions.watch_records("main")
    await anext(watch)
    coming = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0)
    await client.close()
    with pytest.raises(ramet.Cancelled):
        await coming


def test_the_blocking_client_hands_over_each_at_once(address: str, space: str) -> None:
    with ramet.connect_blocking(address, space=space) as client:
        client.sessions.put_session("main")
        watch = client.sessions.watch_records("main", after_seq=0)
        assert next(watch).through_seq == 0
        for seq in (1, 2):
            appending = threading.Thread(
                target=client.sessions.append_records, args=("main", [Record.user(f"r{seq}")]), daemon=True
            )
            appending.start()
            assert [record.content for record in next(watch).records] == [f"r{seq}"]
            appending.join(60)
        watch.close()
