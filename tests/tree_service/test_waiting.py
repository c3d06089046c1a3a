"""Nodes that await their content: hidden, then settled or swept."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from ramet.tree.v1 import tree_pb2 as pb
from ramet_server.domain.errors import NodeExists, NodeHasChildren, NodeNotFound, SessionExists
from tests.tree_service.forest import Forest, TurnedClock

LATER = timedelta(seconds=601)


@pytest.fixture
def waiting(forest: Forest) -> Forest:
    """A root ``a`` with the children ``b``, ``w`` and ``c``, of which ``w`` awaits its content."""
    forest.grow(": a x", "a: b")
    forest.create("w", "a", awaits_content=True)
    forest.create("c", "a")
    return forest


def test_no_reader_sees_a_waiting_node(waiting: Forest) -> None:
    for size in (1, 2, 100):
        assert waiting.tree(None, size) == ["a", "x", "b", "c"]
        assert waiting.tree("a", size) == ["a", "b", "c"]
        assert waiting.descendants("a", size) == ["b", "c"]
        assert waiting.children("a", size) == ["b", "c"]
        assert waiting.siblings("b", size) == ["c"]
        assert waiting.nodes(size) == ["a", "b", "c", "x"]
    assert waiting.get("a").children == ["b", "c"]
    assert waiting.get("a").child_count == 2
    assert [e.node.child_count for e in waiting.entries()] == [2, 0, 0, 0]
    waiting.create("r", awaits_content=True)
    assert waiting.roots() == ["a", "x"]


@pytest.mark.parametrize(
    "use",
    [
        lambda forest: forest.get("w"),
        lambda forest: forest.create("y", "w"),
        lambda forest: forest.relabel("w", "y"),
        lambda forest: forest.move("w", "x"),
        lambda forest: forest.move("x", "w"),
        lambda forest: forest.delete("w"),
        lambda forest: forest.add_ref("w", "x"),
        lambda forest: forest.add_ref("x", "w"),
        lambda forest: forest.remove_ref("w", "x"),
        lambda forest: forest.config("w"),
        lambda forest: forest.put_config("w", pb.Config()),
        lambda forest: forest.children("w"),
        lambda forest: forest.siblings("w"),
        lambda forest: forest.ancestors("w"),
        lambda forest: forest.descendants("w"),
        lambda forest: forest.tree("w"),
    ],
)
def test_calls_on_a_waiting_node_find_nothing(waiting: Forest, use: Callable[[Forest], object]) -> None:
    with pytest.raises(NodeNotFound):
        use(waiting)
    waiting.make_session("w")
    assert waiting.children("a") == ["b", "w", "c"]


def test_the_session_makes_it_visible(waiting: Forest) -> None:
    waiting.make_session("w", turn_count=2)
    assert waiting.tree() == ["a", "x", "b", "w", "c"]
    assert waiting.get("w").index == 1
    assert waiting.get("a").child_count == 3
    assert [e.turn_count for e in waiting.entries("w")] == [2]


def test_its_id_is_taken_and_a_repeated_create_is_answered(forest: Forest) -> None:
    forest.create("a")
    first = forest.create("w", "a", awaits_content=True, request_id="q")
    assert forest.create("w", "a", awaits_content=True, request_id="q") == first
    with pytest.raises(NodeExists):
        forest.create("w")


@pytest.mark.parametrize(
    "change",
    [
        lambda forest: forest.create("y", "w"),
        lambda forest: forest.relabel("w", "y"),
        lambda forest: forest.move("w", "x"),
        lambda forest: forest.move("x", "w"),
        lambda forest: forest.add_ref("w", "x"),
        lambda forest: forest.add_ref("x", "w"),
        lambda forest: forest.put_config("w", pb.Config()),
    ],
)
def test_a_change_that_leans_on_it_settles_it(waiting: Forest, change: Callable[[Forest], object]) -> None:
    waiting.make_session("w")
    change(waiting)
    waiting.drop_session("w")
    assert waiting.get("w").id == "w"


def test_the_sweep_settles_or_deletes_what_waited_too_long(waiting: Forest, clock: TurnedClock) -> None:
    waiting.create("v", "a", awaits_content=True)
    waiting.create("r", awaits_content=True)
    waiting.make_session("v")
    _sweep(waiting)
    assert waiting.create("early", "a", awaits_content=True).index == 4
    clock.ahead = LATER
    waiting.create("late", "a", awaits_content=True)
    _sweep(waiting)
    waiting.drop_session("v")
    assert [(node, waiting.get(node).index) for node in waiting.children("a")] == [("b", 0), ("c", 1), ("v", 2)]
    waiting.make_session("late")
    assert waiting.get("late").index == 3
    assert waiting.create("r").index == 2


def test_a_swept_id_is_free_again(waiting: Forest, clock: TurnedClock) -> None:
    clock.ahead = LATER
    _sweep(waiting)
    assert waiting.create("w", "x").parent_id == "x"


def test_a_swept_node_is_not_answered_again(forest: Forest, clock: TurnedClock) -> None:
    forest.create("w", awaits_content=True, request_id="q")
    clock.ahead = LATER
    _sweep(forest)
    with pytest.raises(NodeNotFound):
        forest.create("w", awaits_content=True, request_id="q")


def test_its_maker_takes_it_back_and_nothing_else(waiting: Forest) -> None:
    for node_id in ("b", "nobody"):
        with pytest.raises(NodeNotFound):
            waiting.delete(node_id, only_awaiting=True)
    assert waiting.delete("w", only_awaiting=True, request_id="q").deleted_node_ids == ["w"]
    assert waiting.delete("w", only_awaiting=True, request_id="q").deleted_node_ids == ["w"]
    assert waiting.get("c").index == 1
    waiting.create("w", "a", awaits_content=True)
    waiting.make_session("w")
    with pytest.raises(NodeNotFound):
        waiting.delete("w", only_awaiting=True)
    assert waiting.children("a") == ["b", "c", "w"]


def test_a_node_does_not_await_what_is_there(forest: Forest) -> None:
    forest.make_session("a")
    with pytest.raises(SessionExists):
        forest.create("a", awaits_content=True)
    assert forest.tree() == []
    forest.create("b", awaits_content=True, request_id="q")
    forest.make_session("b")
    assert forest.create("b", awaits_content=True, request_id="q").id == "b"
    assert forest.create("a").id == "a"


def test_waiting_children_count_for_a_deletion(waiting: Forest) -> None:
    waiting.delete("b")
    waiting.delete("c")
    with pytest.raises(NodeHasChildren):
        waiting.delete("a")
    deleted = waiting.delete("a", pb.DELETE_POLICY_CASCADE, delete_sessions=True)
    assert deleted.deleted_node_ids == ["a", "w"]
    assert waiting.removals() == []
    waiting.make_session("w")
    assert waiting.tree() == ["x"]


def test_reparenting_keeps_a_waiting_child(waiting: Forest) -> None:
    waiting.delete("a", pb.DELETE_POLICY_REPARENT)
    assert waiting.roots() == ["b", "c", "x"]
    waiting.make_session("w")
    assert waiting.roots() == ["b", "w", "c", "x"]


def test_a_waiting_node_moves_with_its_family(waiting: Forest) -> None:
    waiting.move("a", "x")
    waiting.make_session("w")
    assert waiting.ancestors("w") == ["a", "x"]
    assert waiting.get("w").depth == 2


def test_a_removal_is_finished_only_as_it_was_asked(forest: Forest) -> None:
    forest.create("a")
    forest.make_session("a")
    forest.delete("a", delete_sessions=True)
    old = [one for one in forest.sweep.pending_removals(forest.call, 1000) if one.space_id == forest.call.space]
    forest.drop_session("a")
    forest.create("a")
    origin = forest.make_session("a")
    forest.delete("a", delete_sessions=True)
    forest.sweep.finish_removal(forest.call, old[0])
    assert forest.removals() == [("a", origin)]
    new = [one for one in forest.sweep.pending_removals(forest.call, 1000) if one.space_id == forest.call.space]
    assert [(one.session_id, one.origin) for one in new] == [("a", origin)]
    forest.sweep.finish_removal(forest.call, new[0])
    forest.sweep.finish_removal(forest.call, new[0])
    assert forest.removals() == []


def _sweep(forest: Forest) -> None:
    forest.sweep.waiting(forest.call, 1000)
