"""The server as a whole: health, reflection, limits, and how it starts and ends."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from ramet_server.domain.call import Call
from ramet_server.domain.errors import DatabaseUnavailable, SchemaMismatch, WriteConflict
from ramet_server.serving.listen import Server, Servicer, _options
from ramet_server.serving.readiness import StartRefused
from ramet_server.serving.settings import Settings
from ramet_server.serving.workers import Workers
from tests.serving.conftest import method_of, reason_of
from tests.serving.echo_service import DESCRIPTOR, NAME, EchoServicer, Text

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
QUICK = Settings(listen="127.0.0.1:0", lame_duck_seconds=0, grace_seconds=10)


def _fine() -> None:
    """Stands for a database that is there."""


@asynccontextmanager
async def serving(
    prepare: Callable[[], None] = _fine,
    *,
    servicer: EchoServicer | None = None,
    settings: Settings = QUICK,
    insist: bool = False,
    background: Any = (),
) -> AsyncIterator[tuple[Server, grpc.aio.Channel]]:
    server = Server(
        settings,
        [Servicer(DESCRIPTOR, servicer or EchoServicer())],
        prepare,
        _fine,
        insist=insist,
        background=background,
    )
    await server.start()
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    async with grpc.aio.insecure_channel(server.address, options=options) as channel:
        try:
            yield server, channel
        finally:
            await server.stop_now()


def _health(channel: grpc.aio.Channel, service: str) -> Any:
    check: Any = channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    return check(health_pb2.HealthCheckRequest(service=service), timeout=5)


def _watch(channel: grpc.aio.Channel) -> Any:
    watch: Any = channel.unary_stream(
        "/grpc.health.v1.Health/Watch",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    return watch(health_pb2.HealthCheckRequest(service=NAME))


class Database:
    """Stands for a database that a test can take away and bring back."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error
        self.asked = threading.Semaphore(0)

    def prepare(self) -> None:
        self.asked.release()
        if self.error is not None:
            raise self.error


async def test_health_is_serving_once_the_database_was_prepared() -> None:
    async with serving() as (server, channel):
        await server.wait_until_ready()
        assert (await _health(channel, "")).status == SERVING
        assert (await _health(channel, NAME)).status == SERVING
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await _health(channel, "nobody")
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_health_lists_every_service() -> None:
    async with serving() as (server, channel):
        await server.wait_until_ready()
        listed: Any = channel.unary_unary(
            "/grpc.health.v1.Health/List", response_deserializer=vars(health_pb2)["HealthListResponse"].FromString
        )
        statuses = (await listed(b"")).statuses
        assert {name: answer.status for name, answer in statuses.items()} == {"": SERVING, NAME: SERVING}


async def test_server_without_its_database_runs_says_so_and_serves_once_it_comes() -> None:
    database = Database(DatabaseUnavailable("The database is away."))
    async with serving(database.prepare) as (server, channel):
        say = method_of(channel, "Say")
        watch = _watch(channel)
        assert (await watch.read()).status == NOT_SERVING
        assert (await _health(channel, "")).status == NOT_SERVING
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await say(Text(text="hi"))
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert reason_of(caught.value) == "DATABASE_UNAVAILABLE"
        database.error = None
        assert (await watch.read()).status == SERVING
        await server.wait_until_ready()
        assert (await say(Text(text="hi"))).text == "hi"


async def test_schema_of_another_version_refuses_the_start() -> None:
    error = SchemaMismatch("The schema is older; run ramet-server migrate.")
    async with serving(Database(error).prepare) as (server, _):
        with pytest.raises(StartRefused, match="run ramet-server migrate"):
            await server.serve(asyncio.Event())


async def test_database_that_must_be_there_refuses_the_start() -> None:
    error = DatabaseUnavailable("unable to open database file")
    async with serving(Database(error).prepare, insist=True) as (server, _):
        with pytest.raises(StartRefused, match="unable to open"):
            await server.wait_until_ready()


async def test_first_look_that_others_stand_in_the_way_of_is_repeated() -> None:
    database = Database(WriteConflict("Others set up the database."))
    async with serving(database.prepare, insist=True) as (server, channel):
        watch = _watch(channel)
        assert (await watch.read()).status == NOT_SERVING
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await method_of(channel, "Say")(Text())
        assert reason_of(caught.value) == "DATABASE_UNAVAILABLE"
        database.error = None
        await server.wait_until_ready()


@pytest.mark.parametrize("setting", [0.0, 5.0])
def test_connections_are_pinged_and_renewed_as_set(setting: float) -> None:
    options = dict(_options(Settings(max_connection_age_seconds=setting)))
    assert options["grpc.http2.min_recv_ping_interval_without_data_ms"] <= 10_000
    assert options["grpc.keepalive_permit_without_calls"] == 1
    assert options.get("grpc.max_connection_age_ms", 0) == setting * 1000


async def test_schema_of_another_version_that_comes_later_is_told_to_callers_until_it_is_migrated() -> None:
    database = Database(DatabaseUnavailable("away"))
    async with serving(database.prepare) as (server, channel):
        await server.wait_for_first_look()
        say = method_of(channel, "Say")
        with pytest.raises(grpc.aio.AioRpcError):
            await say(Text())
        database.error = SchemaMismatch("older")
        while database.asked.acquire(blocking=False):
            """Looks from before count no more."""
        for _ in range(2):
            assert await asyncio.to_thread(database.asked.acquire, timeout=20)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await say(Text())
        assert reason_of(caught.value) == "SCHEMA_MISMATCH"
        database.error = None
        await server.wait_until_ready()
        await say(Text())


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
async def test_reflection_lists_and_describes_every_service(version: str) -> None:
    async with serving() as (_, channel):
        ask: Any = channel.stream_stream(
            f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
            request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
        )
        stream = ask()
        await stream.write(reflection_pb2.ServerReflectionRequest(list_services=""))
        listed = [service.name for service in (await stream.read()).list_services_response.service]
        assert listed == [
            "grpc.health.v1.Health",
            "grpc.reflection.v1.ServerReflection",
            "grpc.reflection.v1alpha.ServerReflection",
            NAME,
        ]
        for name in listed:
            await stream.write(reflection_pb2.ServerReflectionRequest(file_containing_symbol=name))
            assert (await stream.read()).file_descriptor_response.file_descriptor_proto
        await stream.write(reflection_pb2.ServerReflectionRequest(file_containing_symbol="nothing.Here"))
        assert (await stream.read()).error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]
        await stream.done_writing()
        assert await stream.code() is grpc.StatusCode.OK


async def test_messages_over_four_megabytes_pass_both_ways_up_to_the_limit() -> None:
    async with serving() as (server, channel):
        await server.wait_until_ready()
        say = method_of(channel, "Say")
        text = "x" * (32 * 1024 * 1024 - 100)
        assert (await say(Text(text=text))).text == text
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await say(Text(text=text + "x" * 200))
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_port_in_use_refuses_the_start_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = Settings(listen=f"127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(StartRefused, match=r"^Cannot listen on 127\.0\.0\.1:\d+: Address already in use\.$"):
            async with serving(settings=settings):
                raise AssertionError("It started.")


async def test_second_server_on_the_same_port_is_refused() -> None:
    async with serving() as (server, _):
        with pytest.raises(StartRefused, match="already in use"):
            async with serving(settings=Settings(listen=server.address)):
                raise AssertionError("It started.")


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:", "127.0.0.1:99999", "host.invalid:1", ""])
async def test_address_that_cannot_be_had_refuses_the_start(address: str) -> None:
    with pytest.raises(StartRefused, match="Cannot listen on"):
        async with serving(settings=Settings(listen=address)):
            raise AssertionError("It started.")


async def test_unix_socket_can_be_listened_on(tmp_path: Any) -> None:
    async with serving(settings=Settings(listen=f"unix:{tmp_path}/ramet.sock")) as (server, channel):
        await server.wait_until_ready()
        assert (await method_of(channel, "Say")(Text(text="hi"))).text == "hi"


async def test_drain_lets_calls_in_flight_finish_and_refuses_new_ones() -> None:
    servicer = EchoServicer()
    async with serving(servicer=servicer) as (server, channel):
        await server.wait_until_ready()
        say = method_of(channel, "Say")
        flying = [asyncio.ensure_future(say(Text(text="wait", count=n))) for n in range(8)]
        for _ in flying:
            assert await asyncio.to_thread(servicer.gate.entered.acquire, timeout=10)
        drain = asyncio.create_task(server.drain())
        await _until_refused(server.address)
        servicer.gate.go.set()
        assert [reply.text for reply in await asyncio.gather(*flying)] == ["wait"] * 8
        await asyncio.wait_for(drain, 10)


async def test_call_that_comes_while_others_finish_is_told_to_come_again_later() -> None:
    servicer = EchoServicer()
    async with serving(servicer=servicer) as (server, channel):
        await server.wait_until_ready()
        say = method_of(channel, "Say")
        flying = asyncio.ensure_future(say(Text(text="wait")))
        assert await asyncio.to_thread(servicer.gate.entered.acquire, timeout=10)
        drain = asyncio.create_task(server.drain())
        await _until_refused(server.address)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await say(Text(text="new"))
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert reason_of(caught.value) == "DRAINING"
        trailing = caught.value.trailing_metadata()
        assert trailing is not None
        assert trailing["grpc-retry-pushback-ms"] == "1000"
        servicer.gate.go.set()
        assert (await flying).text == "wait"
        await asyncio.wait_for(drain, 10)


async def test_busy_server_that_drains_loses_nothing_and_cancels_nobody() -> None:
    """Clients that wait as they are told see success or UNAVAILABLE, and each success was executed."""
    servicer = EchoServicer()
    codes: list[grpc.StatusCode] = []
    busy = threading.Event()

    def on_say(request: Any, call: Call) -> Any:
        # Or more: of two threads that come here at once, neither may see the very number.
        if len(servicer.calls) >= 500:
            busy.set()
        return Text(text=request.text)

    servicer.on_say = on_say

    async def client(channel: grpc.aio.Channel) -> None:
        say = method_of(channel, "Say")
        while not codes or codes[-1] is grpc.StatusCode.OK:
            try:
                await say(Text(text="hi"))
            except grpc.aio.AioRpcError as error:
                codes.append(error.code())
                return
            codes.append(grpc.StatusCode.OK)

    async with serving(servicer=servicer) as (server, channel):
        await server.wait_until_ready()
        clients = [asyncio.create_task(client(channel)) for _ in range(100)]
        assert await asyncio.to_thread(busy.wait, 20)
        await server.drain()
        await asyncio.gather(*clients)
    assert set(codes) == {grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE}
    assert codes.count(grpc.StatusCode.OK) == len(servicer.calls)


async def _until_refused(address: str) -> None:
    while True:
        async with grpc.aio.insecure_channel(address) as channel:
            try:
                await method_of(channel, "Say")(Text(text="new"), timeout=0.5)
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.UNAVAILABLE:
                    return


async def test_drain_lets_a_sync_stream_finish() -> None:
    servicer = EchoServicer()
    async with serving(servicer=servicer) as (server, channel):
        await server.wait_until_ready()
        call = method_of(channel, "Count")(Text(text="wait", count=1000))
        assert await asyncio.to_thread(servicer.gate.entered.acquire, timeout=10)
        drain = asyncio.create_task(server.drain())
        await _until_refused(server.address)
        servicer.gate.go.set()
        assert [reply.count async for reply in call] == list(range(1000))
        await asyncio.wait_for(drain, 10)


async def test_lame_duck_serves_calls_while_health_says_not_serving() -> None:
    settings = Settings(listen="127.0.0.1:0", lame_duck_seconds=0.5)
    async with serving(settings=settings) as (server, channel):
        await server.wait_until_ready()
        watch = _watch(channel)
        assert (await watch.read()).status == SERVING
        drain = asyncio.create_task(server.drain())
        assert (await watch.read()).status == NOT_SERVING
        assert (await method_of(channel, "Say")(Text(text="hi"))).text == "hi"
        await asyncio.wait_for(drain, 10)


async def test_watches_do_not_hold_up_a_drain() -> None:
    settings = Settings(listen="127.0.0.1:0", lame_duck_seconds=0, grace_seconds=60)
    async with serving(settings=settings) as (server, channel):
        await server.wait_until_ready()
        watches = [_watch(channel), method_of(channel, "Watch")(Text())]
        for watch in watches:
            await watch.read()
        reflection: Any = channel.stream_stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")()
        await reflection.write(reflection_pb2.ServerReflectionRequest(list_services="").SerializeToString())
        await reflection.read()
        await asyncio.wait_for(server.drain(), 10)
        assert (await watches[0].read()).status == NOT_SERVING
        for call in (*watches, reflection):
            assert await call.code() is grpc.StatusCode.UNAVAILABLE


async def test_calls_that_outlast_the_grace_are_cancelled() -> None:
    servicer = EchoServicer()
    settings = Settings(listen="127.0.0.1:0", lame_duck_seconds=0, grace_seconds=0.2)
    async with serving(servicer=servicer, settings=settings) as (server, channel):
        await server.wait_until_ready()
        flying = asyncio.ensure_future(method_of(channel, "Say")(Text(text="wait")))
        assert await asyncio.to_thread(servicer.gate.entered.acquire, timeout=10)
        drain = asyncio.create_task(server.drain())
        assert await asyncio.to_thread(servicer.calls[0].cancelled.wait, 10)
        servicer.gate.go.set()
        await asyncio.wait_for(drain, 10)
        with pytest.raises(grpc.aio.AioRpcError):
            await flying


async def test_background_work_starts_when_ready_and_ends_with_the_drain() -> None:
    seen: asyncio.Queue[str] = asyncio.Queue()
    database = Database(DatabaseUnavailable("away"))

    async def work(workers: Workers) -> None:
        seen.put_nowait(await workers.run(lambda: "started"))
        try:
            await asyncio.Event().wait()
        finally:
            seen.put_nowait("ended")

    async with serving(database.prepare, background=[work]) as (server, _):
        assert seen.empty()
        database.error = None
        await server.wait_until_ready()
        assert await asyncio.wait_for(seen.get(), 10) == "started"
        await asyncio.wait_for(server.drain(), 10)
        assert await asyncio.wait_for(seen.get(), 10) == "ended"
