"""One pass, many passes at once, and passes that are cut."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from threading import Barrier

import pytest

from ramet.tree.v1 import tree_pb2
from ramet_server.domain.call import Call
from ramet_server.domain.errors import BelowTrimFloor, DatabaseUnavailable
from ramet_server.domain.limits import Limits
from ramet_server.sweeping import Counts, Sweep
from tests.sweeping.world import World
from tests.tree_service.forest import Forest
from tests.verifying.world import World as Whole
from tree_service.rules.sweeping import SweepRules
from tree_service.rules.values import ChangeKind
from tree_service.rules.watching import WatchRules
from tree_service.store import SqlBacklog, TreeStore
from tree_service.store.swept import SqlSwept

LONG = 25


def test_a_pass_over_nothing_does_nothing(world: World) -> None:
    world.grow("a")
    assert world.pass_over() == Counts()


def test_a_session_goes_with_its_node_though_the_client_died(world: World) -> None:
    world.grow("a", "b")
    world.storage.fork("a", "f", all={})
    world.leave_behind("a", "b")
    assert world.sessions() == ["a", "b", "f"]
    counts = world.pass_over()
    assert counts.deleted_sessions == 2
    assert world.sessions() == ["f"]
    assert world.storage.said("f") == "u a u"
    # The records of b are gone, those of a are shown by its fork.
    assert world.rows("record") == 3
    assert world.rows("session_removal") == 0
    assert world.pass_over() == Counts()


def test_a_session_that_the_client_deleted_itself_is_only_forgotten(world: World) -> None:
    world.grow("a")
    world.leave_behind("a")
    world.storage.delete("a")
    assert world.pass_over().deleted_sessions == 0
    assert world.rows("session_removal") == 0


def test_a_session_that_was_made_anew_stays(world: World) -> None:
    world.grow("a")
    world.leave_behind("a")
    world.storage.delete("a")
    world.grow("a")
    assert world.pass_over().deleted_sessions == 0
    assert world.sessions() == ["a"]
    assert world.forest.roots() == ["a"]


def test_nodes_without_content_are_settled_or_deleted(world: World) -> None:
    for node_id in ("came", "never"):
        world.forest.create(node_id, awaits_content=True)
    world.storage.put("came")
    assert world.pass_over() == Counts()
    world.later(minutes=11)
    assert world.pass_over() == Counts(settled_nodes=1, deleted_nodes=1)
    assert world.pass_over() == Counts()
    assert world.forest.roots() == ["came"]


def test_request_ids_are_forgotten_in_time(world: World) -> None:
    world.forest.create("a", request_id="q")
    world.storage.put("a", request_id="q")
    world.later(hours=LONG)
    world.forest.create("b", request_id="r")
    assert world.pass_over().forgotten_requests == 2
    assert world.rows("request_log") == 1


def test_much_work_is_done_in_one_pass(world: World) -> None:
    ids = [f"s{number}" for number in range(25)]
    for node_id in ids:
        world.grow(node_id)
    world.leave_behind(*ids)
    assert world.pass_over().deleted_sessions == 25
    assert world.rows("record") == 0


def test_five_servers_at_once_do_each_thing_once(world: World) -> None:
    ids = [f"s{number}" for number in range(12)]
    for node_id in ids:
        world.grow(node_id, request_id=f"q-{node_id}")
        world.forest.create(f"w-{node_id}", node_id, awaits_content=True)
        world.forest.create(f"v-{node_id}", awaits_content=True)
        world.storage.put(f"v-{node_id}")
    world.later(hours=LONG)
    world.leave_behind(*ids[:6])
    start = Barrier(5)

    def sweep(_: int) -> Counts:
        other = Sweep(world.database, Limits(), world.clock)
        start.wait()
        return other.run(Call(""))

    with ThreadPoolExecutor(5) as servers:
        counts = sum(servers.map(sweep, range(5)), Counts())
    assert (counts.settled_nodes, counts.deleted_nodes) == (12, 6)
    assert (counts.deleted_sessions, counts.forgotten_requests) == (6, 12)
    assert world.rows("session_removal") == 0
    assert world.rows("record") == 6 * 3
    assert sorted(world.forest.roots()) == sorted([*ids[6:], *(f"v-{node_id}" for node_id in ids)])
    assert world.pass_over() == Counts()


def test_a_pass_that_is_cut_between_session_and_note_is_finished_by_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.grow("a")
    world.leave_behind("a")

    def cut(*_: object) -> None:
        raise DatabaseUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(SweepRules, "finish_removal", cut)
        with pytest.raises(DatabaseUnavailable):
            world.pass_over()
    assert world.sessions() == []
    assert world.rows("session_removal") == 1
    assert world.pass_over().deleted_sessions == 0
    assert world.rows("session_removal") == 0


def late(world: World, parent_id: str | None, *ids: str) -> None:
    """Makes nodes that await their content, and sweeps them because it does not come."""
    for node_id in ids:
        config = tree_pb2.Config(system_prompt=f"for {node_id}")
        world.forest.create(node_id, parent_id, label=f"L {node_id}", config=config, awaits_content=True)
    world.later(minutes=11)
    assert world.pass_over() == Counts(deleted_nodes=len(ids))


def test_a_node_comes_back_when_its_content_came_after_it_was_swept(world: World) -> None:
    world.grow("a", "gone")
    world.forest.create("first", "a")
    late(world, "a", "slow", "never")
    late(world, "gone", "lost")
    world.forest.delete("gone")
    for session_id in ("slow", "lost"):
        world.storage.fork("a", session_id)
    assert world.forest.roots() == ["a"]
    assert world.pass_over() == Counts(returned_nodes=2)
    assert world.forest.roots() == ["a", "lost"]
    assert world.forest.children("a") == ["first", "slow"]
    assert (world.forest.get("slow").label, world.forest.config("slow").system_prompt) == ("L slow", "for slow")
    assert (world.forest.get("slow").depth, world.forest.get("lost").depth) == (1, 0)
    assert world.pass_over() == Counts()
    assert Whole(world.database).verify() == []
    # What never comes is forgotten.
    world.later(days=8)
    assert world.pass_over().returned_nodes == 0
    assert world.rows("swept_node") == 0


def test_a_node_that_was_made_again_or_deleted_since_does_not_come_back(world: World) -> None:
    late(world, None, "again", "deleted", "alone")
    for node_id in ("again", "deleted"):
        world.forest.create(node_id)
        world.storage.put(node_id)
    world.forest.delete("deleted")
    world.storage.put("alone")
    world.storage.delete("alone")
    assert world.pass_over() == Counts()
    assert world.forest.roots() == ["again"]
    assert world.rows("swept_node") == 1


def test_content_that_comes_while_its_node_is_swept_is_not_left_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.grow("a")
    world.forest.create("f", "a", awaits_content=True)
    world.later(minutes=11)
    keep = SqlSwept.keep

    def and_then(self: SqlSwept, node_id: str, now: datetime) -> None:
        keep(self, node_id, now)
        # Just before the sweep commits; SQLite has one writer, so there it comes right after.
        if world.database.engine.dialect.name != "sqlite":
            world.storage.fork("a", "f")

    with monkeypatch.context() as patch:
        patch.setattr(SqlSwept, "keep", and_then)
        world.sweep.steps[0].some(Call(""))
    if world.database.engine.dialect.name == "sqlite":
        world.storage.fork("a", "f")
    assert world.forest.children("a") == []
    assert world.pass_over().returned_nodes == 1
    assert world.forest.children("a") == ["f"]


def test_old_changes_of_the_forest_are_forgotten_and_whoever_comes_late_is_told(world: World) -> None:
    rules = WatchRules(TreeStore(world.database, Limits(), world.clock), SqlBacklog(world.database))
    elsewhere = Forest(world.database, Call("elsewhere"), Limits(), world.clock)
    world.forest.grow(": a b")
    elsewhere.grow(": x")
    world.later(days=6)
    world.forest.relabel("a", "new")
    assert world.pass_over().forgotten_tree_changes == 0
    world.later(days=2)
    assert world.pass_over().forgotten_tree_changes == 3
    assert world.rows("tree_change") == 1
    with pytest.raises(BelowTrimFloor) as caught:
        rules.begin(world.call, 1)
    assert caught.value.details == {"floor_position": "2"}
    (change,) = rules.news(world.call, rules.begin(world.call, 2)).changes
    assert (change.position, change.kind, change.node_id) == (3, ChangeKind.UPDATED, "a")
    # A watch that is open when it happens is told too.
    world.later(days=8)
    assert world.pass_over().forgotten_tree_changes == 1
    with pytest.raises(BelowTrimFloor):
        rules.news(world.call, 2)
    assert rules.begin(world.call, None) == rules.begin(world.call, 3) == 3
    world.forest.create("c")
    (change,) = rules.news(world.call, 3).changes
    assert (change.position, change.node_id) == (4, "c")


def test_changes_of_the_forest_may_be_kept_for_ever(world: World) -> None:
    world.forest.grow(": a b")
    world.later(days=10_000)
    kept = Sweep(world.database, replace(Limits(), tree_change_days=0), world.clock)
    assert kept.run(Call("")).forgotten_tree_changes == 0
    assert world.rows("tree_change") == 2
