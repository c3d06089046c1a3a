"""Deleting a space: all of it, from every table, and nothing of another one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import islice
from threading import Event

import pytest
from click.testing import CliRunner, Result

from ramet.telemetry.v1 import telemetry_pb2
from ramet_server.clearing import Cleared, Clearing
from ramet_server.commands import main
from ramet_server.database.tables import metadata
from ramet_server.domain.call import Call
from ramet_server.domain.limits import Limits
from session_service.rules.erasure import ErasureRules
from tests.telemetry import events as e
from tests.verifying.test_busy import Client
from tests.verifying.world import Rows, World

T = metadata.tables
CALL = Call("space")
DAY = timedelta(days=1)


def fill(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts something of the space into every table."""
    space = world.space
    space.fill()
    space.storage.put("remembered", request_id="r1")
    space.forest.create("remembered", request_id="r2")
    space.told.say(telemetry_pb2.FEEDBACK_VALUE_USEFUL, request_id="r3")
    space.storage.append("remembered", "u a(x) u")
    space.storage.put("going", "u a")
    space.forest.create("going")
    space.forest.delete("going", delete_sessions=True)
    space.storage.put("soiled", "u a(x) u a u a u")
    with monkeypatch.context() as patch:
        # As a server that dies before it erased what it dropped.
        patch.setattr(ErasureRules, "sweep_released", lambda *_: None)
        space.storage.trim("soiled", 1)
        space.storage.delete("soiled")
    world.add(
        T["telemetry_producer"],
        space_id="space",
        producer_id="p",
        committed_through_seq=1,
        holder="h",
        dropped_count=0,
        updated_at=world.clock.now(),
    )
    space.forest.create("never", awaits_content=True)
    world.change(T["topology_node"], {"space_id": "space", "node_id": "never"}, created_at=world.clock.now() - DAY)
    space.forest.sweep.waiting(Call(""), 1)
    coming = {"space_id": "space", "session_id": "coming"}
    world.add(T["arriving_session"], **coming, origin="c" * 32, heard_at=world.clock.now())
    world.add(T["history_span"], owner_origin="c" * 32, first_seq=1, origin="c" * 32, last_seq=(1 << 63) - 1)
    world.add(T["session_tag"], space_id="space", session_id="stray", tag="left by damage")


def clear(world: World) -> Iterator[Cleared]:
    """Begins to delete the space."""
    return Clearing(world.database, Limits(), world.clock).run(CALL)


@pytest.fixture
def before(world: World, monkeypatch: pytest.MonkeyPatch) -> Rows:
    """The rows of the other space; then both are filled."""
    world.other.fill()
    rows = world.dump()
    fill(world, monkeypatch)
    # A table that is added must be filled here, or nothing tells whether it is emptied.
    assert [name for name, now in world.dump().items() if len(now) <= len(rows[name])] == []
    return rows


def test_everything_of_the_space_is_gone_from_every_table_and_nothing_else(world: World, before: Rows) -> None:
    *_, last = clear(world)
    assert (last.sessions, last.nodes, last.diagnoses, last.left) == (6, 7, 1, {})
    assert world.dump() == before
    assert world.verify() == []
    *_, again = clear(world)
    assert again == Cleared()


def test_it_may_be_cut_anywhere_and_run_again(world: World, before: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ramet_server.clearing.clearing._SESSIONS", 2)
    monkeypatch.setattr("ramet_server.clearing.clearing._NODES", 4)
    monkeypatch.setattr("ramet_server.clearing.clearing._NOTES", 3)
    cuts = 0
    while world.dump() != before:
        for _ in islice(clear(world), 3):
            pass
        damaged = [finding for finding in world.verify() if finding.code != "TAG_STRAY"]
        assert damaged == []
        cuts += 1
        if cuts > 50:
            break
    list(clear(world))
    assert world.dump() == before
    assert cuts > 3


def test_what_is_written_meanwhile_goes_too_or_is_whole(world: World, before: Rows) -> None:
    over = Event()

    def write(seed: int) -> None:
        client = Client(world.space, seed)
        while not over.is_set():
            client.do()

    with ThreadPoolExecutor(3) as threads:
        writing = [threads.submit(write, seed) for seed in range(3)]
        try:
            for _ in range(3):
                list(clear(world))
                assert world.verify() == []
        finally:
            over.set()
        for each in writing:
            each.result()
    assert world.verify() == []
    list(clear(world))
    assert world.dump() == before


def run(world: World, *arguments: str) -> Result:
    """Runs the command over the database of a world."""
    url = world.database.engine.url.render_as_string(hide_password=False)
    return CliRunner().invoke(main, ["delete-space", "--database-url", url, *arguments])


def test_the_command_only_counts_until_it_is_told_yes(world: World, before: Rows) -> None:
    full = world.dump()
    told = run(world, "space")
    assert told.exit_code == 0
    *rows, advice = told.stdout.splitlines()
    assert {"session=6", "topology_node=7", "diagnosis_session=1", "space=1"} <= set(rows)
    assert "--yes" in advice
    assert world.dump() == full
    done = run(world, "space", "--yes")
    assert (done.exit_code, done.stdout.splitlines()[0].split()[:3]) == (0, ["deleted", "sessions=6", "nodes=7"])
    assert world.dump() == before
    assert run(world, "space").stdout == "There is nothing of this space.\n"
    assert run(world, "space", "--yes").exit_code == 0
    assert run(world, " bad ").exit_code == 1


def test_the_command_says_what_was_written_meanwhile(world: World, before: Rows) -> None:
    # A client whose clock is ahead, or that wrote after the command began.
    world.later(days=1)
    world.space.told.told(e.started("late", session_id="late"))
    done = run(world, "space", "--yes")
    assert done.exit_code == 1
    assert "diagnosis_session=1" in done.stdout
    assert "stop the writers" in done.stdout
