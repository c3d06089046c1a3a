"""Streams: sync ones step by step on workers, async ones on the loop."""

import asyncio
from typing import Any

import grpc
import pytest

from ramet_server.domain.call import Call
from ramet_server.domain.errors import BelowTrimFloor
from tests.serving.conftest import EchoStarter, method_of, reason_of
from tests.serving.echo_service import Text


async def test_sync_stream_brings_every_reply_in_order(echo_server: EchoStarter) -> None:
    async with echo_server() as echo:
        counts = [reply.count async for reply in echo.method("Count")(Text(count=1000))]
        assert counts == list(range(1000))


async def test_error_within_a_stream_comes_after_the_replies_before_it(echo_server: EchoStarter) -> None:
    def fail(request: Any, call: Call) -> Any:
        raise BelowTrimFloor("gone", details={"floor_seq": "3"})

    async with echo_server() as echo:
        echo.servicer.on_say = fail
        call = echo.method("Count")(Text(count=3))
        assert [(await call.read()).count for _ in range(3)] == [0, 1, 2]
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call.read()
        assert caught.value.code() is grpc.StatusCode.OUT_OF_RANGE
        assert reason_of(caught.value) == "BELOW_TRIM_FLOOR"


async def test_cancelled_stream_closes_its_generator_on_a_worker(echo_server: EchoStarter) -> None:
    async with echo_server() as echo:
        call = echo.method("Count")(Text(text="long", count=1_000_000))
        await call.read()
        call.cancel()
        assert await asyncio.to_thread(echo.servicer.closed.wait, 10)
        assert echo.servicer.closed_on.startswith("ramet-worker")
        assert echo.servicer.calls[0].cancelled.is_set()


async def test_stream_cancelled_in_the_middle_of_a_step_closes_its_generator_after_it(echo_server: EchoStarter) -> None:
    async with echo_server() as echo:
        call = echo.method("Count")(Text(text="wait", count=10))
        await asyncio.to_thread(echo.servicer.gate.entered.acquire, timeout=10)
        call.cancel()
        assert await asyncio.to_thread(echo.servicer.calls[0].cancelled.wait, 10)
        assert not echo.servicer.closed.is_set()
        echo.servicer.gate.go.set()
        assert await asyncio.to_thread(echo.servicer.closed.wait, 10)


async def test_streams_of_slow_clients_hold_no_thread_and_no_unbounded_memory(echo_server: EchoStarter) -> None:
    async with echo_server(threads=1) as echo:
        calls = [echo.method("Count")(Text(text="long", count=1_000_000)) for _ in range(8)]
        for call in calls:
            await call.read()
        # The one thread is free for others while eight streams stand still.
        assert (await echo.method("Say")(Text(text="hi"), timeout=10)).text == "hi"
        assert echo.servicer.counted < 10_000
        for call in calls:
            call.cancel()


async def test_async_methods_run_on_the_loop(echo_server: EchoStarter) -> None:
    async with echo_server() as echo:
        assert (await echo.method("SayAsync")(Text(text="hi"))).text == "hi"
        assert (await echo.method("Gather")(iter([Text(text="a"), Text(text="b")]))).text == "ab"
        replies = [reply.text async for reply in echo.method("Chat")(iter([Text(text="ab"), Text(text="cd")]))]
        assert replies == ["ba", "dc"]


async def test_cancelled_async_stream_runs_its_cleanup(echo_server: EchoStarter) -> None:
    async with echo_server() as echo:
        call = echo.method("Watch")(Text())
        assert (await call.read()).text == "first"
        call.cancel()
        assert await asyncio.to_thread(echo.servicer.closed.wait, 10)
        assert echo.servicer.calls[0].cancelled.is_set()


async def test_drain_ends_async_streams_as_unavailable(echo_server: EchoStarter) -> None:
    async with echo_server() as echo:
        call = echo.method("Watch")(Text())
        assert (await call.read()).text == "first"
        echo.long_calls.drain()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call.read()
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert reason_of(caught.value) == "DRAINING"
        assert echo.servicer.closed.is_set()
        with pytest.raises(grpc.aio.AioRpcError) as late:
            await echo.method("Watch")(Text()).read()
        assert reason_of(late.value) == "DRAINING"


async def test_stream_of_a_client_that_vanished_ends(echo_server: EchoStarter) -> None:
    async with echo_server() as echo:
        async with grpc.aio.insecure_channel(echo.address) as channel:
            call = method_of(channel, "Count")(Text(text="long", count=1_000_000))
            await call.read()
        assert await asyncio.to_thread(echo.servicer.closed.wait, 10)
