"""What changes is told to those who watch, whichever server committed it."""

from __future__ import annotations

import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet.telemetry.v1.telemetry_pb2_grpc import TelemetryStub
from ramet_server.domain.errors import DatabaseUnavailable, Overloaded
from ramet_server.serving.workers import Workers
from telemetry.rules.listing import ListingRules
from telemetry.rules.tail_queries import Change
from telemetry.rules.tailing import WINDOW_S, Look, Seen, TailRules
from telemetry.store.answers import SqlAnswersStore
from telemetry.tail_hub import TailHub
from tests.harness.server import ServerProcess, running_server
from tests.harness.waiting import wait_until
from tests.telemetry import events as e
from tests.telemetry.world import TurnedClock, World

SPACE = (("ramet-space", "watched"),)


@contextmanager
def client(address: str) -> Iterator[TelemetryStub]:
    """A client of one server."""
    with grpc.insecure_channel(address) as channel:
        yield TelemetryStub(channel)


class Watch:
    """A stream of changes, read on a thread of the test's own."""

    def __init__(self, stub: TelemetryStub, session_id: str = "") -> None:
        self.stream = stub.TailEvents(pb.TailEventsRequest(session_id=session_id), metadata=SPACE)
        self.error: grpc.RpcError | None = None
        self.told: queue.SimpleQueue[pb.TailEventsResponse] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            for message in self.stream:
                self.told.put(message)
        except grpc.RpcError as error:
            self.error = error

    def end(self) -> grpc.Call:
        """Waits for the stream's end and returns what ended it."""
        self._thread.join(60)
        assert self.error is not None
        # What a channel raises is both, which its types do not say.
        return cast(grpc.Call, self.error)


def tell(stub: TelemetryStub, *events: pb.Event) -> None:
    """Takes events."""
    reply = stub.AppendEvents(pb.AppendEventsRequest(events=events), metadata=SPACE)
    assert reply.accepted == len(events)


def begin(watches: list[Watch], stub: TelemetryStub, session_id: str = "d") -> None:
    """Returns once all are told of what happens; a client cannot know when its watch begins."""
    number = 0

    def all_told() -> bool:
        nonlocal number
        number += 1
        tell(stub, e.step_completed(f"{session_id}-{number}", f"first-{number}", session_id=session_id))
        return all(not watch.told.empty() for watch in watches)

    wait_until(all_told, "every watch is told something")


def test_a_commit_on_one_server_is_told_on_another(database_url: str) -> None:
    with (
        running_server(database_url) as one,
        running_server(database_url) as other,
        client(one) as writer,
        client(other) as reader,
    ):
        everything, only = Watch(reader), Watch(reader, "d")
        begin([everything, only], writer)
        tell(writer, e.started("x", session_id="else"), e.tool("y", "t", step_key="s"), e.completed("z"))
        tell(writer, e.step_completed("last", "last"))
        kinds, names = set(), set()
        while True:
            message = everything.told.get(timeout=60)
            row = getattr(message, message.WhichOneof("row") or "")
            kinds.add(message.WhichOneof("row"))
            names.add(row.session_id)
            if message.step.step_key == "last":
                break
        assert kinds == {"session", "step", "tool_invocation"}
        assert names == {"d", "else"}
        told = [only.told.get(timeout=60)]
        while told[-1].step.step_key != "last":
            told.append(only.told.get(timeout=60))
        assert {getattr(each, each.WhichOneof("row") or "").session_id for each in told} == {"d"}
        ended = [each.session for each in told if each.HasField("session")][-1]
        assert (ended.status, ended.tool_call_count) == (pb.RUN_STATUS_SUCCESS, 1)
        steps = [each.step.step_key for each in told if each.HasField("step")]
        assert len(steps) == len(set(steps)), "a change is told once"
        everything.stream.cancel()
        only.stream.cancel()


def test_watchers_take_no_threads_and_a_drain_ends_them(database_url: str, tmp_path: Path) -> None:
    with ServerProcess(tmp_path, {"RAMET_DATABASE_URL": database_url}) as server, client(server.address) as stub:
        watches = [Watch(stub)]
        begin(watches, stub, "a")
        tasks = Path(f"/proc/{server.process.pid}/task")
        before = len(list(tasks.iterdir()))
        watches += [Watch(stub) for _ in range(60)]
        begin(watches[1:], stub, "b")
        # gRPC's own pool may breathe a little.
        assert len(list(tasks.iterdir())) <= before + 4
        assert server.terminate() == 0, server.log.read_text()
        for watch in watches:
            error = watch.end()
            assert error.code() is grpc.StatusCode.UNAVAILABLE
            assert _reason(error) == "DRAINING"


def _reason(error: grpc.Call) -> str:
    status = status_pb2.Status()
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            assert isinstance(value, bytes)
            status.ParseFromString(value)
    info = error_details_pb2.ErrorInfo()
    status.details[0].Unpack(info)
    return str(info.reason)


@pytest.fixture
def rules(world: World) -> TailRules:
    """The rules over the world's rows."""
    store = SqlAnswersStore(world.database)
    return TailRules(store, world.clock, ListingRules(store, world.limits, world.clock))


def look(rules: TailRules, world: World, seen: Seen) -> list[str]:
    """Looks once and tells what of each diagnosis changed."""
    found = rules.look(world.call, seen)
    told: list[str] = []
    for some in found.parts():
        told += [f"{type(row).__name__} {row.session_id}" for row in rules.rows(world.call, some)]
        seen.remember(some)
    seen.finish(found)
    return told


def test_what_was_committed_before_is_not_told_and_what_comes_is_told_once(
    world: World, rules: TailRules, clock: TurnedClock
) -> None:
    world.told(e.started("e1"))
    seen = rules.begin(world.call)
    assert look(rules, world, seen) == []
    world.told(e.step_completed("e2", "s"))
    assert look(rules, world, seen) == ["Diagnosis d", "Step d"]
    for _ in range(3):
        clock.ahead += timedelta(seconds=WINDOW_S * 0.6)
        assert look(rules, world, seen) == []
    world.told(e.completed("e3"))
    assert look(rules, world, seen) == ["Diagnosis d"]


def test_a_commit_that_lags_behind_its_own_time_is_told(world: World, rules: TailRules, clock: TurnedClock) -> None:
    clock.ahead += timedelta(seconds=60)
    seen = rules.begin(world.call)
    assert look(rules, world, seen) == []
    clock.ahead -= timedelta(seconds=WINDOW_S * 0.8)
    world.told(e.started("e1"))
    clock.ahead += timedelta(seconds=WINDOW_S * 0.8)
    assert look(rules, world, seen) == ["Diagnosis d"]


def test_a_look_that_failed_is_made_up_for(world: World, rules: TailRules, clock: TurnedClock) -> None:
    seen = rules.begin(world.call)
    world.told(e.started("e1"))
    rules.look(world.call, seen)
    # Nothing was remembered, however long the database is away.
    clock.ahead += timedelta(seconds=WINDOW_S * 5)
    assert look(rules, world, seen) == ["Diagnosis d"]


def test_more_than_one_look_takes_is_told_by_the_next(
    world: World, rules: TailRules, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("telemetry.rules.tailing._LIGHT_AT_ONCE", 2)
    monkeypatch.setattr("telemetry.rules.tailing._LIGHT_OF_A_LOOK", 4)
    monkeypatch.setattr("telemetry.rules.tailing._ROWS_AT_ONCE", 3)
    seen = rules.begin(world.call)
    world.told(*e.steps(11))
    told = []
    while some := look(rules, world, seen):
        told += some
    assert told.count("Step d") == 11
    assert told.count("Diagnosis d") == 1


class Scripted:
    """Rules that tell what the test says, and count how often they are asked."""

    def __init__(self, rows: Callable[[], Any]) -> None:
        self.looks = 0
        self._rows = rows

    def begin(self, call: Any) -> Seen:
        return Seen(TurnedClock().now())

    def look(self, call: Any, seen: Seen) -> Look:
        self.looks += 1
        row = self._rows()
        return Look([Change(None, row.id, row.updated_at)], row.updated_at, complete=True)  # type: ignore[arg-type]  # the kind does not matter

    def rows(self, call: Any, changes: Any) -> Any:
        return [self._rows()]


@pytest.fixture
def workers() -> Iterator[Workers]:
    """Threads for looks."""
    made = Workers(1, 8)
    yield made
    assert made.close(10)


@pytest.fixture
def row(world: World) -> Any:
    """A diagnosis of much text."""
    world.told(e.started("e1", query="x" * 60_000))
    found = SqlAnswersStore(world.database).read(world.call, lambda unit: unit.diagnoses.get("d"))
    assert found is not None
    return found


async def test_many_watchers_are_one_poller(row: Any, workers: Workers) -> None:
    scripted = Scripted(lambda: row)
    hub = TailHub(scripted, poll_s=0.01)  # type: ignore[arg-type]  # it has their shape
    watches = [hub.watch("space", None, workers) for _ in range(50)]
    firsts = [await anext(watch) for watch in watches]
    assert {each.session.session_id for each in firsts} == {"d"}
    assert scripted.looks < 60
    assert len(hub._watched) == 1
    for watch in watches:
        await watch.aclose()
    assert not hub._watched


async def _take_all(watch: AsyncIterator[pb.TailEventsResponse]) -> None:
    async for _ in watch:
        pass


async def test_one_who_takes_too_slowly_is_cut_off_and_the_others_are_not(row: Any, workers: Workers) -> None:
    scripted = Scripted(lambda: row)
    hub = TailHub(scripted, poll_s=0)  # type: ignore[arg-type]  # it has their shape
    slow, quick = hub.watch("space", None, workers), hub.watch("space", None, workers)
    await anext(slow)
    for _ in range(300):
        await anext(quick)
    with pytest.raises(Overloaded):
        await _take_all(slow)
    await anext(quick)
    await quick.aclose()


async def test_a_database_that_is_away_for_a_while_ends_no_watch(row: Any, workers: Workers) -> None:
    failures = [DatabaseUnavailable("away"), DatabaseUnavailable("away")]

    def rows() -> Any:
        if failures:
            raise failures.pop()
        return row

    hub = TailHub(Scripted(rows), poll_s=0.01)  # type: ignore[arg-type]  # it has their shape
    watch = hub.watch("space", None, workers)
    assert (await anext(watch)).session.session_id == "d"
    await watch.aclose()
