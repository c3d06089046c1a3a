"""The hub of watches: who is woken when, and what a watcher costs while it waits or lags."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Collection, Iterator, Mapping

import pytest

from ramet_server.domain.call import Call
from ramet_server.domain.errors import DatabaseUnavailable, Internal, SessionNotFound
from ramet_server.serving.watch_hub import Step, WatchHub
from ramet_server.serving.workers import Workers
from tests.harness.waiting import wait_until

NEVER_S = 3600.0
SOON_S = 0.01


class Thing:
    """Something that is watched: a number that grows."""

    def __init__(self) -> None:
        self.number = 0
        self.looks = 0
        self.gone = False
        self.fault: Exception | None = None

    def stands(self, _: Call, keys: Collection[str]) -> Mapping[str, int]:
        """Looks where the thing stands."""
        self.looks += 1
        if self.fault is not None:
            raise self.fault
        return {} if self.gone else dict.fromkeys(keys, self.number)


class Reader:
    """A watcher's steps over a thing, one number at a time."""

    def __init__(self, thing: Thing) -> None:
        self.steps = 0
        self._thing = thing
        self._seen = -1

    def step(self) -> Step[int]:
        """Reads the next number."""
        self.steps += 1
        now = self._thing.number
        if self._thing.gone:
            raise SessionNotFound("gone")
        if self._seen == now:
            return Step(None, now)
        self._seen += 1
        return Step(self._seen, now, more=self._seen < now)


@pytest.fixture
def workers() -> Iterator[Workers]:
    """A few threads."""
    made = Workers(4, 64)
    yield made
    assert made.close(10)


@pytest.fixture
def thing() -> Thing:
    """What is watched."""
    return Thing()


async def rest(watch: AsyncIterator[int]) -> list[int]:
    """Takes all that comes until the watch ends."""
    return [each async for each in watch]


async def test_what_is_committed_here_is_told_without_a_look(workers: Workers, thing: Thing) -> None:
    hub = WatchHub(thing.stands, NEVER_S)
    watch = hub.follow("k", workers, Reader(thing).step)
    assert await anext(watch) == 0
    for number in (1, 2, 3):
        coming = asyncio.ensure_future(anext(watch))
        thing.number = number
        threading.Thread(target=hub.moved, args=("k",)).start()
        assert await coming == number
    hub.moved("another")
    assert thing.looks == 1
    await watch.aclose()


async def test_what_moves_while_it_is_read_is_not_taken_for_seen(workers: Workers, thing: Thing) -> None:
    hub = WatchHub(thing.stands, NEVER_S)
    reader = Reader(thing)

    def step() -> Step[int]:
        found = reader.step()
        if thing.number < 3:
            thing.number += 1
            hub.moved("k")
        return found

    watch = hub.follow("k", workers, step)
    async with asyncio.timeout(30):
        assert [await anext(watch) for _ in range(4)] == [0, 1, 2, 3]
    await watch.aclose()


async def test_what_is_committed_elsewhere_is_found_by_one_look_for_all(workers: Workers, thing: Thing) -> None:
    hub = WatchHub(thing.stands, SOON_S)
    watches = [hub.follow(f"k{n}", workers, Reader(thing).step) for n in range(40)]
    assert [await anext(watch) for watch in watches] == [0] * 40
    thing.number = 1
    before = thing.looks
    assert await asyncio.gather(*map(anext, watches)) == [1] * 40
    assert thing.looks - before < 40
    thing.gone = True
    for watch in watches:
        with pytest.raises(SessionNotFound):
            await anext(watch)


async def test_without_watchers_nobody_looks(workers: Workers, thing: Thing) -> None:
    hub = WatchHub(thing.stands, SOON_S)
    watch = hub.follow("k", workers, Reader(thing).step)
    await anext(watch)
    await asyncio.to_thread(wait_until, lambda: thing.looks > 2, "it is looked at")
    await watch.aclose()
    assert (hub._places, hub._poller) == ({}, None)
    hub.moved("k")


async def test_a_watcher_reads_only_what_its_client_takes(workers: Workers, thing: Thing) -> None:
    hub = WatchHub(thing.stands, SOON_S)
    slow, quick = Reader(thing), Reader(thing)
    lagging, keeping_up = (hub.follow("k", workers, reader.step) for reader in (slow, quick))
    assert (await anext(lagging), await anext(keeping_up)) == (0, 0)
    for number in range(1, 50):
        thing.number = number
        hub.moved("k")
        assert await anext(keeping_up) == number
    assert slow.steps == 1
    assert [await anext(lagging) for _ in range(49)] == list(range(1, 50))
    await lagging.aclose()
    await keeping_up.aclose()


async def test_many_that_are_woken_at_once_leave_threads_to_calls(workers: Workers, thing: Thing) -> None:
    hub = WatchHub(thing.stands, NEVER_S)
    inside, most, go_on = 0, 0, threading.Event()
    guard = threading.Lock()

    def step() -> Step[int]:
        nonlocal inside, most
        with guard:
            inside += 1
            most = max(most, inside)
        assert go_on.wait(30)
        with guard:
            inside -= 1
        return Step(1, 1)

    watches = [hub.follow(f"k{n}", workers, step) for n in range(200)]
    coming = [asyncio.ensure_future(anext(watch)) for watch in watches]
    await asyncio.to_thread(wait_until, lambda: most == 2, "two read")
    # More than the queue holds are waiting, and a call is served all the same.
    assert await workers.run(lambda: "served") == "served"
    go_on.set()
    assert await asyncio.gather(*coming) == [1] * 200
    assert most == 2
    for watch in watches:
        await watch.aclose()


async def test_a_database_that_comes_back_soon_ends_no_watch(workers: Workers, thing: Thing) -> None:
    hub = WatchHub(thing.stands, SOON_S)
    watch = hub.follow("k", workers, Reader(thing).step)
    await anext(watch)
    thing.fault = DatabaseUnavailable("away")
    looks = thing.looks
    await asyncio.to_thread(wait_until, lambda: thing.looks > looks + 2, "looks fail")
    thing.fault, thing.number = None, 1
    assert await anext(watch) == 1
    await watch.aclose()


@pytest.mark.parametrize("fault", [DatabaseUnavailable("away"), ZeroDivisionError()])
async def test_nobody_waits_for_ever_for_a_look_that_cannot_be(
    workers: Workers, thing: Thing, fault: Exception
) -> None:
    hub = WatchHub(thing.stands, SOON_S, patience_s=0)
    waiting, lagging = (hub.follow("k", workers, Reader(thing).step) for _ in range(2))
    await anext(waiting)
    await anext(lagging)
    thing.fault = fault
    expected = DatabaseUnavailable if isinstance(fault, DatabaseUnavailable) else Internal
    for watch in (waiting, lagging):
        with pytest.raises(expected):
            await rest(watch)
    # Whoever comes later is not tied to what has ended.
    thing.fault, thing.number = None, 1
    fresh = hub.follow("k", workers, Reader(thing).step)
    assert [await anext(fresh), await anext(fresh)] == [0, 1]
    thing.number = 2
    assert await anext(fresh) == 2
    await fresh.aclose()
