"""The sweep beside the calls of a server, and as a command."""

import asyncio
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner
from sqlalchemy import update

from ramet_server.commands import main
from ramet_server.commands.serve import _background
from ramet_server.database.tables.tree import topology_node
from ramet_server.domain.call import Call
from ramet_server.domain.errors import DatabaseUnavailable, WriteConflict
from ramet_server.serving.settings import Settings
from ramet_server.serving.workers import Workers
from ramet_server.sweeping import Counts, Step, in_background
from ramet_server.sweeping.background import make_pass
from tests.harness.server import running_server
from tests.sweeping.world import World


@pytest.fixture
def workers() -> Iterator[Workers]:
    """Threads for a sweep."""
    made = Workers(2, 8)
    yield made
    assert made.close(10)


async def test_a_step_that_fails_does_not_hold_up_the_others(workers: Workers) -> None:
    def busy(_: Call) -> tuple[Counts, bool]:
        raise WriteConflict("busy")

    def broken(_: Call) -> tuple[Counts, bool]:
        raise ZeroDivisionError

    left = [3, 2, 1]

    def some(_: Call) -> tuple[Counts, bool]:
        left.pop()
        return Counts(deleted_nodes=1), bool(left)

    steps = [Step("busy", busy), Step("broken", broken), Step("some", some)]
    assert await make_pass(steps, workers) == Counts(deleted_nodes=3)


async def test_a_database_that_is_away_is_asked_once_in_a_pass(workers: Workers) -> None:
    tried: list[str] = []

    def some(_: Call) -> tuple[Counts, bool]:
        tried.append("some")
        return Counts(deleted_nodes=1), False

    def away(_: Call) -> tuple[Counts, bool]:
        tried.append("away")
        raise DatabaseUnavailable("away")

    steps = [Step("some", some), Step("away", away), Step("away still", away)]
    assert await make_pass(steps, workers) == Counts(deleted_nodes=1)
    assert tried == ["some", "away"]


async def test_steps_run_on_workers(workers: Workers) -> None:
    seen: list[str] = []

    def look(_: Call) -> tuple[Counts, bool]:
        seen.append(threading.current_thread().name)
        return Counts(), False

    await make_pass([Step("look", look)], workers)
    assert seen[0].startswith("ramet-worker")


async def test_a_cancelled_pass_interrupts_its_step(workers: Workers) -> None:
    begun, cut = threading.Event(), threading.Event()

    def wait(call: Call) -> tuple[Counts, bool]:
        begun.set()
        if call.cancelled.wait(10):
            cut.set()
        return Counts(), True

    sweeping = asyncio.create_task(make_pass([Step("wait", wait)], workers))
    assert await asyncio.to_thread(begun.wait, 10)
    sweeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sweeping
    assert await asyncio.to_thread(cut.wait, 10)


async def test_passes_go_on_until_cancelled(workers: Workers) -> None:
    passes = asyncio.Queue[int]()
    loop = asyncio.get_running_loop()

    def count(_: Call) -> tuple[Counts, bool]:
        loop.call_soon_threadsafe(passes.put_nowait, 1)
        return Counts(), False

    sweeping = asyncio.ensure_future(in_background([Step("count", count)], 0.01)(workers))
    for _ in range(3):
        await asyncio.wait_for(passes.get(), 10)
    sweeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sweeping


def test_a_running_server_finishes_what_a_client_left(world: World, database_url: str) -> None:
    world.grow("a")
    world.leave_behind("a")
    swept = threading.Event()

    def tell(_: Call) -> tuple[Counts, bool]:
        swept.set()
        return Counts(), False

    steps = [*world.sweep.steps, Step("tell", tell)]
    with running_server(database_url, background=[in_background(steps, 0.05)]):
        assert swept.wait(60)
    assert world.sessions() == []
    assert world.rows("session_removal") == 0


def test_every_server_sweeps_unless_told_not_to(world: World) -> None:
    assert len(_background(Settings(), world.database)) == 1
    assert _background(Settings(sweep_seconds=0), world.database) == []


def test_the_command_makes_one_pass_and_prints_counts(world: World, database_url: str) -> None:
    world.grow("a")
    world.leave_behind("a")
    world.forest.create("w", awaits_content=True)
    old = datetime.now(UTC) - timedelta(hours=1)
    aged = update(topology_node).values(created_at=old)
    world.database.write(world.call, lambda connection: connection.execute(aged))
    done = CliRunner().invoke(main, ["sweep", "--database-url", database_url])
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "settled_nodes=0",
        "deleted_nodes=1",
        "returned_nodes=0",
        "deleted_sessions=1",
        "expired_sessions=0",
        "expired_nodes=0",
        "dropped_arrivals=0",
        "released_records=0",
        "forgotten_requests=0",
        "expired_diagnoses=0",
        "detached_diagnoses=0",
        "deleted_diagnoses=0",
        "forgotten_events=0",
        "forgotten_producers=0",
        "forgotten_tree_changes=0",
    ]
    assert world.sessions() == []
    assert world.forest.roots() == []


def test_the_command_refuses_a_database_without_the_schema(database_url: str) -> None:
    done = CliRunner().invoke(main, ["sweep", "--database-url", database_url])
    assert done.exit_code == 1
    assert "ramet-server migrate" in done.stderr
