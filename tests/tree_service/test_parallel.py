"""Many callers at once."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any

from ramet.tree.v1 import tree_pb2 as pb
from ramet_server.domain.errors import MoveMakesCycle, NodeExists, RametError
from tests.tree_service.forest import Forest

CALLERS = 8


def at_once(*works: Callable[[], object]) -> list[Any]:
    """Starts all works at the same moment; returns what each returned, or the refusal that it raised."""
    start = Barrier(len(works))

    def run(work: Callable[[], object]) -> object:
        start.wait()
        try:
            return work()
        except RametError as refusal:
            return refusal

    with ThreadPoolExecutor(len(works)) as threads:
        return list(threads.map(run, works))


def creating(forest: Forest, node_id: str, parent_id: str | None = None, request_id: str = "") -> Callable[[], object]:
    """Returns the work of creating a node."""
    return partial(forest.create, node_id, parent_id, request_id=request_id)


def test_parallel_children_get_all_indexes(forest: Forest) -> None:
    forest.create("p")
    for round_ in range(3):
        made = at_once(*(creating(forest, f"c{round_}-{n}", "p") for n in range(CALLERS)))
        first = round_ * CALLERS
        assert sorted(node.index for node in made) == list(range(first, first + CALLERS))
    assert forest.get("p").child_count == 3 * CALLERS


def test_parallel_roots_of_a_new_space_get_all_indexes(forest: Forest) -> None:
    made = at_once(*(creating(forest, f"r{n}") for n in range(CALLERS)))
    assert sorted(node.index for node in made) == list(range(CALLERS))


def test_one_id_is_created_once(forest: Forest) -> None:
    made = at_once(*[creating(forest, "a")] * CALLERS)
    assert sum(isinstance(one, pb.Node) for one in made) == 1
    assert sum(isinstance(one, NodeExists) for one in made) == CALLERS - 1


def test_one_request_takes_effect_once(forest: Forest) -> None:
    made = at_once(*[creating(forest, "", request_id="q")] * CALLERS)
    assert all(one == made[0] for one in made)
    assert len(forest.roots()) == 1


def test_opposing_moves_never_make_a_cycle(forest: Forest) -> None:
    forest.grow(": a b", "a: x", "b: y")
    for _ in range(10):
        moves = at_once(lambda: forest.move("a", "y"), lambda: forest.move("b", "x"))
        assert sum(isinstance(one, pb.MoveNodeResponse) for one in moves) == 1
        assert sum(isinstance(one, MoveMakesCycle) for one in moves) == 1
        assert len(forest.tree()) == 4
        forest.move("a")
        forest.move("b")


def test_moves_around_a_ring_never_make_a_cycle(forest: Forest) -> None:
    ring = [f"n{n}" for n in range(CALLERS)]
    forest.grow(f": {' '.join(ring)}")
    moves = at_once(*(partial(forest.move, ring[n], ring[(n + 1) % CALLERS]) for n in range(CALLERS)))
    assert sum(isinstance(one, MoveMakesCycle) for one in moves) == 1
    assert len(forest.roots()) == 1
    assert len(forest.tree()) == CALLERS


def test_changes_of_every_kind_at_once_leave_the_forest_whole(forest: Forest) -> None:
    forest.grow(": a b c", "a: d e f", "d: g h", "b: i j")
    for round_ in range(5):
        done = at_once(
            creating(forest, f"n{round_}", "d"),
            lambda: forest.move("d", "b", 0),
            lambda: forest.move("i", "a", 1),
            lambda: forest.add_ref("e", "j"),
            lambda: forest.move("e", "j"),
            partial(forest.delete, f"n{round_ - 1}", pb.DELETE_POLICY_REPARENT),
            lambda: forest.relabel("d", "x"),
            lambda: forest.move("d", "a"),
        )
        faults = [one for one in done if isinstance(one, RametError)]
        assert {type(one).__name__ for one in faults} <= {"NodeNotFound", "IllegalRef"}
        forest.move("e", "a")


def test_a_deletion_and_a_birth_below_it_leave_no_orphan(forest: Forest) -> None:
    for round_ in range(5):
        forest.create(f"p{round_}")
        at_once(
            partial(forest.delete, f"p{round_}", pb.DELETE_POLICY_CASCADE),
            creating(forest, f"c{round_}", f"p{round_}"),
        )
    assert forest.roots() == []
