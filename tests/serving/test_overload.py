"""More calls than threads: some wait, the rest are refused at once, and health goes on."""

import asyncio
import time

import grpc
import pytest
from google.rpc import error_details_pb2

from ramet_server.domain.errors import Draining, Overloaded
from ramet_server.serving.workers import Share, Workers
from tests.serving.conftest import EchoStarter, details_of, reason_of
from tests.serving.echo_service import Gate, Text


async def test_call_beyond_the_queue_is_refused_at_once_with_a_delay(echo_server: EchoStarter) -> None:
    async with echo_server(threads=1, queue_size=2) as echo:
        say = echo.method("Say")
        held = [asyncio.ensure_future(say(Text(text="wait")))]
        await asyncio.to_thread(echo.servicer.gate.entered.acquire, timeout=10)
        results = await asyncio.wait_for(_first_refusals(say, 10, 8), 10)
        for error in results:
            assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert reason_of(error) == "OVERLOADED"
            retry = error_details_pb2.RetryInfo()
            assert details_of(error).details[1].Unpack(retry)
            assert retry.retry_delay.ToMilliseconds() == 250
        echo.servicer.gate.go.set()
        await asyncio.gather(*held)


async def _first_refusals(say: object, sent: int, expected: int) -> list[grpc.aio.AioRpcError]:
    assert callable(say)
    calls = {asyncio.ensure_future(say(Text(text="hi"))) for _ in range(sent)}
    refused: list[grpc.aio.AioRpcError] = []
    while len(refused) < expected:
        done, calls = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        refused += [error for call in done if isinstance(error := call.exception(), grpc.aio.AioRpcError)]
    for call in calls:
        call.cancel()
    return refused


async def test_fifty_slow_calls_never_starve_a_health_check(echo_server: EchoStarter) -> None:
    async with echo_server(threads=4) as echo:
        say = echo.method("Say")
        slow = [asyncio.ensure_future(say(Text(text="wait"))) for _ in range(60)]
        for _ in range(4):
            await asyncio.to_thread(echo.servicer.gate.entered.acquire, timeout=10)
        started = time.monotonic()
        assert (await echo.method("SayAsync")(Text(text="alive"), timeout=5)).text == "alive"
        assert time.monotonic() - started < 2
        echo.servicer.gate.go.set()
        assert len(await asyncio.gather(*slow)) == 60


async def test_cancelled_task_leaves_the_queue_and_makes_room() -> None:
    workers, gate = Workers(1, 1), Gate()
    running = workers.submit(gate.wait)
    assert gate.entered.acquire(timeout=10)
    waiting = workers.submit(gate.wait)
    with pytest.raises(Overloaded):
        workers.submit(gate.wait)
    assert waiting.cancel()
    workers.submit(lambda: None)
    gate.go.set()
    running.result(10)
    assert workers.close(10)


async def test_next_step_of_an_admitted_call_is_never_refused() -> None:
    workers, gate = Workers(1, 0), Gate()
    running = workers.submit(gate.wait)
    assert gate.entered.acquire(timeout=10)
    with pytest.raises(Overloaded):
        workers.submit(lambda: 1)
    step = workers.submit(lambda: 1, bounded=False)
    gate.go.set()
    running.result(10)
    assert step.result(10) == 1
    assert workers.close(10)


async def test_closed_workers_finish_what_waits_and_take_no_more() -> None:
    workers = Workers(2, 10)
    futures = [workers.submit(lambda n=n: n * n) for n in range(10)]  # type: ignore[misc]  # a bound loop value
    assert workers.close(10)
    assert [future.result(0) for future in futures] == [n * n for n in range(10)]
    with pytest.raises(Draining):
        workers.submit(lambda: None)


async def test_close_tells_of_a_thread_that_is_stuck() -> None:
    workers, gate = Workers(1, 1), Gate()
    workers.submit(gate.wait)
    assert gate.entered.acquire(timeout=10)
    assert not workers.close(0.05)
    gate.go.set()
    assert workers.close(10)


async def test_one_caller_after_another_needs_no_queue() -> None:
    workers = Workers(1, 0)
    assert [await workers.run(lambda: 1) for _ in range(200)] == [1] * 200
    assert workers.close(10)


async def test_long_calls_leave_half_of_the_threads_to_the_others() -> None:
    workers, gate = Workers(4, 5), Gate()
    share = Share(workers)
    held = [asyncio.ensure_future(share.run(gate.wait)) for _ in range(6)]
    for _ in range(2):
        assert await asyncio.to_thread(gate.entered.acquire, timeout=10)
    assert [await workers.run(lambda: 1) for _ in range(20)] == [1] * 20
    assert not gate.entered.acquire(blocking=False)
    # A caller that leaves takes its turn with it only once its thread is free, and one that waits leaves at once.
    held[0].cancel()
    held[5].cancel()
    assert await workers.run(lambda: 1) == 1
    assert not gate.entered.acquire(blocking=False)
    waiting = [asyncio.ensure_future(share.run(lambda: 2)), asyncio.ensure_future(share.run(lambda: 3))]
    with pytest.raises(Overloaded):
        await asyncio.gather(*waiting, share.run(lambda: 4))
    gate.go.set()
    await asyncio.gather(*held[1:5])
    assert await asyncio.gather(*waiting) == [2, 3]
    assert await asyncio.gather(*(share.run(lambda: 5) for _ in range(4))) == [5] * 4
    assert workers.close(10)
