"""Too much to do, and the end of a server: nothing is lost, and a client is told what to do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet.telemetry.v1.telemetry_pb2_grpc import TelemetryStub
from ramet_server.commands.serve import make_server
from ramet_server.commands.services import TELEMETRY
from ramet_server.database.database import Database
from ramet_server.domain.call import Call
from ramet_server.domain.errors import Overloaded
from ramet_server.serving.listen import Server
from ramet_server.serving.settings import Settings
from telemetry.rules.ingest import Appended, Batch, Dropped, IngestRules, Taken
from telemetry.rules.metrics import MetricsRules, MetricsWish
from tests.conformance.calling import within
from tests.harness.server import PROGRAM, ServerProcess
from tests.serving.conftest import details_of, reason_of
from tests.telemetry import events as e
from tests.telemetry.teller import Teller
from tests.telemetry.world import World


class Gate:
    """Holds every commit on its thread until it is opened."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.go = threading.Event()
        self.held = 0

    def wait(self) -> None:
        """Says that somebody is there, and waits."""
        self.held += 1
        self.entered.release()
        assert self.go.wait(60)

    async def someone(self) -> None:
        """Returns when somebody waits."""
        assert await asyncio.to_thread(self.entered.acquire, timeout=30)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """A gate before every commit of events."""
    made, advance, append = Gate(), IngestRules.advance, IngestRules.append

    def slow_advance(
        self: IngestRules, call: Call, producer_id: str, holder: str, steps: Sequence[Batch | Dropped]
    ) -> Taken:
        made.wait()
        return advance(self, call, producer_id, holder, steps)

    def slow_append(self: IngestRules, call: Call, candidates: Any) -> Appended:
        made.wait()
        return append(self, call, candidates)

    monkeypatch.setattr(IngestRules, "advance", slow_advance)
    monkeypatch.setattr(IngestRules, "append", slow_append)
    yield made
    made.go.set()


@asynccontextmanager
async def serving(
    world: World, threads: int = 1, queue_size: int = 0
) -> AsyncIterator[tuple[Server, Any, list[tuple[str, str]]]]:
    """A server with few threads in this loop, a stub, and the metadata of the test's space."""
    url = world.database.engine.url.render_as_string(hide_password=False)
    settings = Settings(
        database_url=url, listen="127.0.0.1:0", lame_duck_seconds=0, pool_size=threads, queue_size=queue_size
    )
    database = Database.open(url, threads)
    server = make_server(settings, [TELEMETRY], database)
    try:
        await server.start()
        await server.wait_until_ready()
        async with grpc.aio.insecure_channel(server.address) as channel:
            yield server, TelemetryStub(channel), [("ramet-space", world.space)]
    finally:
        await server.stop_now()
        database.close()


async def _open(stub: Any, metadata: list[tuple[str, str]], producer_id: str = "p") -> Any:
    call = stub.StreamEvents(metadata=metadata, timeout=60)
    await call.write(pb.StreamEventsRequest(hello=pb.Hello(producer_id=producer_id)))
    assert (await call.read()).HasField("welcome")
    return call


def _batch(first_seq: int, *events: pb.Event) -> pb.StreamEventsRequest:
    return pb.StreamEventsRequest(batch=pb.EventBatch(first_seq=first_seq, events=events))


async def test_a_stream_is_throttled_and_its_batch_committed_all_the_same(world: World, gate: Gate) -> None:
    async with serving(world) as (_, stub, metadata):
        call = await _open(stub, metadata)
        holding = asyncio.ensure_future(
            stub.AppendEvents(pb.AppendEventsRequest(events=e.steps(1, "other")), metadata=metadata)
        )
        await gate.someone()
        await call.write(_batch(1, *e.steps(3)))
        throttle = (await call.read()).throttle
        assert throttle.wait_ms >= 250
        # The second wait is longer; the client sends nothing meanwhile, and nothing again.
        assert (await call.read()).throttle.wait_ms > throttle.wait_ms
        gate.go.set()
        await holding
        while (reply := await call.read()).HasField("throttle"):
            pass
        assert reply.ack.committed_through_seq == 3
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF
    assert len(world.steps()) == 4


async def test_the_unary_door_refuses_at_once_and_takes_nothing(world: World, gate: Gate) -> None:
    async with serving(world) as (_, stub, metadata):
        holding = asyncio.ensure_future(
            stub.AppendEvents(pb.AppendEventsRequest(events=e.steps(1, "held")), metadata=metadata)
        )
        await gate.someone()
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await stub.AppendEvents(pb.AppendEventsRequest(events=e.steps(3)), metadata=metadata)
        assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert reason_of(error.value) == "OVERLOADED"
        retry = error_details_pb2.RetryInfo()
        assert details_of(error.value).details[1].Unpack(retry)
        assert retry.retry_delay.ToMilliseconds() == 250
        gate.go.set()
        await holding
    assert [row["session_id"] for row in world.steps()] == ["held"]


async def test_measures_that_take_long_never_hold_up_events(
    world: World, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    query = MetricsRules.query

    def slow_query(self: MetricsRules, call: Call, wish: MetricsWish) -> Any:
        gate.wait()
        return query(self, call, wish)

    monkeypatch.setattr(MetricsRules, "query", slow_query)
    request = pb.QueryMetricsRequest(
        metrics=[pb.METRIC_STEP_COUNT], created_from=e.at(0), created_before=e.at(86400 * 300)
    )
    async with serving(world, threads=2, queue_size=8) as (_, stub, metadata):
        held = [asyncio.ensure_future(stub.QueryMetrics(request, metadata=metadata)) for _ in range(6)]
        await gate.someone()
        await stub.AppendEvents(pb.AppendEventsRequest(events=e.steps(3)), metadata=metadata, timeout=30)
        stream = await _open(stub, metadata)
        await stream.write(_batch(1, *e.steps(2, "streamed")))
        assert (await stream.read()).ack.committed_through_seq == 2
        assert gate.held == 1
        stream.cancel()
        gate.go.set()
        assert {len((await each).rows) for each in held} == {1}
    assert len(world.steps()) == 5


async def test_a_drain_sends_the_last_ack_and_then_says_so(world: World, gate: Gate) -> None:
    async with serving(world, threads=2, queue_size=8) as (server, stub, metadata):
        busy, idle = await _open(stub, metadata, "busy"), await _open(stub, metadata, "idle")
        await busy.write(_batch(1, *e.steps(3)))
        await gate.someone()
        # This one has come, but waits for the commit before it.
        await busy.write(_batch(4, e.step_completed("e4", "last")))
        drain = asyncio.create_task(server.drain())
        assert await idle.code() is grpc.StatusCode.UNAVAILABLE
        assert not drain.done()
        gate.go.set()
        acks = [reply.ack.committed_through_seq async for reply in _until_the_end(busy)]
        assert acks[-1] in (3, 4)
        assert acks[0] == 3
        assert await busy.code() is grpc.StatusCode.UNAVAILABLE
        for call in (busy, idle):
            assert "shutting down" in await call.details()
        await asyncio.wait_for(drain, 30)
    assert len(world.steps()) == acks[-1]


async def test_a_drain_says_so_even_where_the_last_commit_fails(
    world: World, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: IngestRules, call: Call, producer_id: str, holder: str, steps: Sequence[Batch | Dropped]) -> Taken:
        gate.wait()
        raise Overloaded("busy")

    monkeypatch.setattr(IngestRules, "advance", fail)
    async with serving(world, threads=2, queue_size=8) as (server, stub, metadata):
        call = await _open(stub, metadata)
        await call.write(_batch(1, *e.steps(3)))
        await gate.someone()
        drain = asyncio.create_task(server.drain())
        await asyncio.sleep(0)
        gate.go.set()
        kinds = {reply.WhichOneof("step") async for reply in _until_the_end(call)}
        assert kinds <= {"throttle"}
        assert await call.code() is grpc.StatusCode.UNAVAILABLE
        assert "shutting down" in await call.details()
        await asyncio.wait_for(drain, 30)


async def _until_the_end(call: Any) -> AsyncIterator[pb.StreamEventsResponse]:
    try:
        while (reply := await call.read()) is not grpc.aio.EOF:
            yield reply
    except grpc.aio.AioRpcError:
        return


async def test_a_stream_takes_in_no_more_than_its_credit(world: World, gate: Gate) -> None:
    small = world.with_limits(max_inbox_bytes=256 * 1024)
    async with serving(small, threads=2, queue_size=8) as (_, stub, metadata):
        call = await _open(stub, metadata)
        welcome_credit = world.limits.max_inbox_bytes
        sent = 0

        async def pour() -> None:
            nonlocal sent
            for number in range(400):
                await call.write(_batch(number + 1, e.step_completed(f"e{number}", f"s{number}", thought="x" * 60_000)))
                sent += 1

        pouring = asyncio.create_task(pour())
        await gate.someone()
        # 400 messages of 60 KB are 24 MB: more than the credit and what gRPC's windows take beside it.
        before = -1
        while sent != before:
            before = sent
            await asyncio.sleep(1)
        assert sent * 60_000 < welcome_credit + 12 * 1024 * 1024
        assert not pouring.done()
        gate.go.set()
        while (await call.read()).ack.committed_through_seq < 400:
            pass
        await pouring
        await call.done_writing()
    assert len(world.steps()) == 400


async def test_a_database_that_is_busy_is_waited_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    advance = IngestRules.advance
    refusals = iter([Overloaded("busy", retry_after_s=0.3), Overloaded("busy")])

    def refuse_twice(
        self: IngestRules, call: Call, producer_id: str, holder: str, steps: Sequence[Batch | Dropped]
    ) -> Taken:
        refusal = next(refusals, None)
        if refusal is not None:
            raise refusal
        return advance(self, call, producer_id, holder, steps)

    monkeypatch.setattr(IngestRules, "advance", refuse_twice)
    async with serving(world, threads=2, queue_size=8) as (_, stub, metadata):
        call = await _open(stub, metadata)
        await call.write(_batch(1, *e.steps(2)))
        assert (await call.read()).throttle.wait_ms == 300
        assert (await call.read()).throttle.wait_ms == 600
        assert (await call.read()).ack.committed_through_seq == 2
        await call.done_writing()
    assert len(world.steps()) == 2


def test_the_program_drains_with_streams_open_and_takes_them_up_again(world: World, tmp_path: Path) -> None:
    url = world.database.engine.url.render_as_string(hide_password=False)
    with ServerProcess(tmp_path, {"RAMET_DATABASE_URL": url}, [PROGRAM, "telemetry"]) as server:
        with grpc.insecure_channel(server.address) as channel:
            teller = Teller(within(channel, world.space))
            assert teller.tell(1, *e.steps(3)) == []
            server.process.terminate()
            assert teller.end() == (grpc.StatusCode.UNAVAILABLE, "DRAINING")
        assert server.wait() == 0
        server.start()
        with grpc.insecure_channel(server.address) as channel:
            again = Teller(within(channel, world.space))
            assert again.welcome.committed_through_seq == 3
            again.tell(4, e.completed("end"))
            again.close()
    assert (world.diagnosis()["step_count"], world.diagnosis()["status"]) == (3, "SUCCESS")
