"""Sessions that nobody writes to for long: which go, what they take along, and what keeps its place."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Any

import pytest
from click.testing import CliRunner

from ramet.session.v1 import session_pb2
from ramet_server.commands import main
from ramet_server.domain.call import Call
from ramet_server.domain.errors import RametError
from ramet_server.domain.limits import Limits
from ramet_server.domain.retention import KeptDays
from ramet_server.sweeping import Aged, Counts, Sweep
from ramet_server.sweeping.expiry import SessionExpiry
from tests.session_service.storage import Storage
from tests.sweeping.world import World
from tests.verifying.world import World as Whole

MONTH = KeptDays(30)


def sweep(world: World, days: KeptDays = MONTH) -> Sweep:
    """Returns the sweep under a choice of the operator."""
    return Sweep(world.database, replace(Limits(), session_age=days), world.clock)


def pass_over(world: World, days: KeptDays = MONTH) -> Counts:
    """Makes one pass; released places, requests and changes that are forgotten are of no interest here."""
    counts = sweep(world, days).run(Call(""))
    return replace(counts, released_records=0, forgotten_requests=0, forgotten_tree_changes=0)


def nodes(world: World) -> list[str]:
    """Returns the ids of all nodes."""
    return sorted(world.forest.nodes())


def plant(world: World, *lines: str) -> None:
    """Grows nodes with their sessions; each line is a parent and its children."""
    for line in lines:
        parent, _, children = line.partition(":")
        for child in children.split():
            world.forest.create(child, parent.strip() or None)
            world.storage.put(child, "u a u", tags=["t"], system_prompt="p")


def test_nothing_goes_unless_it_was_asked_for(world: World) -> None:
    plant(world, ": a", "a: b")
    world.later(days=10_000)
    assert pass_over(world, KeptDays()) == Counts()
    assert world.sessions() == ["a", "b"]


def test_old_sessions_go_with_their_nodes_and_all_that_is_theirs(world: World) -> None:
    plant(world, ": old new", "old: below", "below: lower")
    world.storage.put("alone", "u")
    world.later(days=31)
    world.storage.append("new", "a")
    assert pass_over(world) == Counts(expired_sessions=4, expired_nodes=3)
    assert (world.sessions(), nodes(world)) == (["new"], ["new"])
    assert world.forest.roots() == ["new"]
    kept = {"session": 1, "session_tag": 1, "context_slot": 1, "history_span": 1, "record": 4, "released_span": 0}
    assert {name: world.rows(name) for name in kept} == kept
    assert pass_over(world) == Counts()


def test_a_live_descendant_keeps_its_place_and_those_above_it(world: World) -> None:
    plant(world, ": root", "root: left right", "left: leaf")
    world.later(days=31)
    world.storage.append("leaf", "a")
    assert pass_over(world) == Counts(expired_sessions=1, expired_nodes=1)
    assert nodes(world) == ["leaf", "left", "root"]
    assert world.forest.ancestors("leaf") == ["left", "root"]
    world.later(days=31)
    assert pass_over(world) == Counts(expired_sessions=3, expired_nodes=3)
    assert nodes(world) == world.sessions() == []


def test_a_fork_of_what_went_stays_whole(world: World) -> None:
    plant(world, ": source elsewhere")
    world.storage.fork("source", "fork")
    world.forest.create("fork", "elsewhere")
    world.later(days=31)
    world.storage.append("fork", "a")
    world.storage.append("elsewhere", "a")
    assert pass_over(world) == Counts(expired_sessions=1, expired_nodes=1)
    assert world.storage.said("fork") == "u a u a"
    assert world.rows("record") == 4 + 4


def test_a_node_without_a_session_or_with_one_to_come_keeps_those_above_it(world: World) -> None:
    plant(world, ": one other", "one: tall")
    world.forest.create("bare", "one")
    world.later(days=31)
    world.forest.create("fork", "other", awaits_content=True)
    assert pass_over(world) == Counts(expired_sessions=1, expired_nodes=1)
    assert world.sessions() == ["one", "other"]
    world.forest.delete("bare")
    assert pass_over(world) == Counts(expired_sessions=1, expired_nodes=1)


def _relabel(storage: Storage) -> Any:
    return storage.put("a", label="renamed")


def _instruct(storage: Storage) -> Any:
    return storage.put_insight("a", "read me")


def _append(storage: Storage) -> Any:
    return storage.append("a", "a")


def _archive(storage: Storage) -> Any:
    return storage.archive("a")


@pytest.mark.parametrize("write", [_append, _relabel, _instruct, _archive])
def test_any_write_keeps_a_session(world: World, write: Callable[[Storage], Any]) -> None:
    plant(world, ": a b")
    world.later(days=20)
    write(world.storage)
    world.later(days=20)
    assert pass_over(world) == Counts(expired_sessions=1, expired_nodes=1)
    assert world.sessions() == ["a"]


def test_each_space_may_have_days_of_its_own(world: World) -> None:
    spaces = {name: Storage(world.database, name, Limits(), world.clock) for name in ("audit", "brief", "other")}  # type: ignore[arg-type]  # a clock like theirs
    for storage in spaces.values():
        storage.put("a", "u")
    chosen = KeptDays(30, {"brief": 1, "audit": 0})
    world.later(days=2)
    assert pass_over(world, chosen).expired_sessions == 1
    world.later(days=100)
    assert pass_over(world, chosen).expired_sessions == 1
    listed = {name: storage.service.ListSessions(LIST, storage.call) for name, storage in spaces.items()}
    assert {name: len(page.sessions) for name, page in listed.items()} == {"audit": 1, "brief": 0, "other": 0}


LIST = session_pb2.ListSessionsRequest()


def test_what_is_foretold_is_what_goes(world: World) -> None:
    plant(world, ": a b", "a: c d", "c: e")
    world.storage.fork("a", "kept", up_to_seq=2)
    world.storage.fork("b", "also-old")
    world.storage.trim("b", 1)
    world.later(days=31)
    for live in ("d", "kept"):
        world.storage.append(live, "a")
    everything = Whole(world.database)
    before = everything.dump()
    # c and e go, a stays above d; b goes with all that its fork, which goes too, shared.
    foretold = sweep(world).foretell(Call("")).aged
    assert foretold == [Aged("space", sessions=4, nodes=3, records=9)]
    assert everything.dump() == before
    records = world.rows("record")
    assert pass_over(world) == Counts(expired_sessions=4, expired_nodes=3)
    assert world.rows("record") == records - 9
    assert world.sessions() == ["a", "d", "kept"]
    assert world.storage.said("kept") == "u a a"
    assert everything.verify() == []
    assert sweep(world).foretell(Call("")).aged == []


def test_many_go_in_one_pass(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ramet_server.sweeping.expiry._AT_ONCE", 5)
    plant(world, ": root", "root: " + " ".join(f"s{number}" for number in range(12)))
    world.later(days=31)
    assert pass_over(world) == Counts(expired_sessions=13, expired_nodes=13)
    assert world.rows("space") == 1
    assert Whole(world.database).verify() == []


def _grow(world: World) -> None:
    world.forest.create("child", "a", awaits_content=True)


@pytest.mark.parametrize("write", [lambda world: world.storage.append("a", "a"), _grow])
def test_what_changes_after_it_was_chosen_stays(
    world: World, monkeypatch: pytest.MonkeyPatch, write: Callable[[World], Any]
) -> None:
    plant(world, ": a")
    world.later(days=31)
    chosen = SessionExpiry._leaves

    def and_then(self: SessionExpiry, *arguments: Any) -> list[str]:
        leaves = chosen(self, *arguments)
        assert leaves == ["a"]
        write(world)
        return leaves

    monkeypatch.setattr(SessionExpiry, "_leaves", and_then)
    assert pass_over(world) == Counts()
    assert (world.sessions(), nodes(world)) == (["a"], ["a"])


def test_an_append_that_was_acknowledged_is_never_swept(world: World) -> None:
    ids = [f"s{number}" for number in range(24)]
    plant(world, ": " + " ".join(ids))
    world.later(days=31)
    start = Barrier(4)

    def write(seed: int) -> list[str]:
        acknowledged = []
        start.wait()
        for session_id in ids[seed::3][::-1] if seed % 2 else ids[seed::3]:
            try:
                world.storage.append(session_id, "a")
            except RametError:
                continue
            acknowledged.append(session_id)
        return acknowledged

    def take(_: int) -> Counts:
        start.wait()
        return pass_over(world)

    with ThreadPoolExecutor(4) as threads:
        sweeping = threads.submit(take, 0)
        kept = [session_id for found in threads.map(write, range(3)) for session_id in found]
        counts = sweeping.result()
    assert world.sessions() == nodes(world) == sorted(kept)
    assert counts.expired_sessions == counts.expired_nodes == len(ids) - len(kept)
    assert Whole(world.database).verify() == []


def test_the_command_foretells_and_then_does_it(world: World, database_url: str) -> None:
    world.later(days=-40)
    plant(world, ": a", "a: b")
    environment = {"RAMET_DATABASE_URL": database_url, "RAMET_SESSION_DAYS": "0,space=30"}

    def run(*arguments: str) -> list[str]:
        done = CliRunner().invoke(main, ["sweep", *arguments], env=environment)
        assert done.exit_code == 0, done.output
        return done.output.splitlines()

    foretold = run("--dry-run")
    assert foretold[0] == "space=space expired_sessions=2 nodes=2 records=6"
    assert "expired_sessions=2" in foretold
    assert world.sessions() == ["a", "b"]
    done = run()
    assert {"expired_sessions=2", "expired_nodes=2"} <= set(done)
    assert world.sessions() == nodes(world) == []
