"""Moving nodes: ranks, depths, cycles, and the refs that a move makes illegal."""

import pytest

from ramet_server.domain.errors import InvalidField, MoveMakesCycle, NodeNotFound, RequestIdReused, StaleVersion
from tests.tree_service.forest import Forest


def test_a_node_moves_with_all_below_it(forest: Forest) -> None:
    forest.grow(": a b", "a: c d", "c: e", "e: f")
    moved = forest.move("c", "b")
    assert (moved.node.parent_id, moved.node.index, moved.node.depth, moved.node.version) == ("b", 0, 1, 2)
    assert moved.node.children == ["e"]
    assert forest.tree() == ["a", "b", "d", "c", "e", "f"]
    assert forest.children("a") == ["d"]
    moved = forest.move("c", "d")
    assert [(e.node.id, e.node.depth) for e in forest.entries("c")] == [("c", 2), ("e", 3), ("f", 4)]
    assert forest.get("e").version == 1


def test_a_node_becomes_a_root(forest: Forest) -> None:
    forest.grow(": a b", "a: c", "c: d")
    moved = forest.move("c", index=1)
    assert not moved.node.HasField("parent_id")
    assert forest.roots() == ["a", "c", "b"]
    assert forest.get("d").depth == 1


def test_a_root_becomes_a_child(forest: Forest) -> None:
    forest.grow(": a b c", "a: d")
    forest.move("b", "a", 0)
    assert forest.roots() == ["a", "c"]
    assert forest.children("a") == ["b", "d"]


@pytest.mark.parametrize(
    ("node_id", "index", "order"),
    [
        ("a", 2, "bcad"),
        ("d", 0, "dabc"),
        ("c", 1, "acbd"),
        ("b", 1, "abcd"),
        ("a", None, "bcda"),
        ("a", 99, "bcda"),
        ("d", None, "abcd"),
    ],
)
def test_a_node_moves_among_its_siblings(forest: Forest, node_id: str, index: int | None, order: str) -> None:
    forest.grow(": p", "p: a b c d")
    assert forest.move(node_id, "p", index).node.index == order.index(node_id)
    assert forest.children("p") == list(order)


@pytest.mark.parametrize(("index", "order"), [(0, "cab"), (1, "acb"), (2, "abc"), (None, "abc"), (7, "abc")])
def test_a_root_moves_among_the_roots(forest: Forest, index: int | None, order: str) -> None:
    forest.grow(": a b c")
    forest.move("c", None, index)
    assert forest.roots() == list(order)


@pytest.mark.parametrize(("index", "order"), [(0, "xab"), (1, "axb"), (2, "abx"), (None, "abx"), (3, "abx")])
def test_new_siblings_make_room(forest: Forest, index: int | None, order: str) -> None:
    forest.grow(": p q", "p: a b", "q: w x y")
    forest.move("x", "p", index)
    assert forest.children("p") == list(order)
    assert forest.children("q") == ["w", "y"]


@pytest.mark.parametrize("parent_id", ["a", "b", "c"])
def test_a_move_below_itself_is_refused(forest: Forest, parent_id: str) -> None:
    forest.grow(": a", "a: b", "b: c")
    with pytest.raises(MoveMakesCycle):
        forest.move("a", parent_id)
    assert forest.ancestors("c") == ["b", "a"]


def test_a_deeper_cousin_is_a_legal_parent(forest: Forest) -> None:
    forest.grow(": a b", "b: c", "c: d")
    forest.move("a", "d")
    assert forest.ancestors("a") == ["d", "c", "b"]


def test_bad_moves_are_refused(forest: Forest) -> None:
    forest.grow(": a b")
    with pytest.raises(NodeNotFound):
        forest.move("a", "nobody")
    with pytest.raises(NodeNotFound):
        forest.move("nobody", "a")
    with pytest.raises(InvalidField):
        forest.move("a", "")
    with pytest.raises(InvalidField):
        forest.move("a", "b", -1)
    with pytest.raises(StaleVersion):
        forest.move("a", "b", expected_version=2)
    assert forest.roots() == ["a", "b"]


def test_refs_that_become_illegal_are_removed_and_reported(forest: Forest) -> None:
    forest.grow(": a x", "a: b", "b: c", "x: y z", "y: w")
    forest.add_ref("b", "y")
    forest.add_ref("b", "z")
    forest.add_ref("c", "x")
    forest.add_ref("y", "c")
    forest.add_ref("w", "b")
    before = forest.get("y").version
    moved = forest.move("b", "y")
    assert [(ref.node_id, ref.target_id) for ref in moved.removed_refs] == [("b", "y"), ("c", "x"), ("y", "c")]
    assert moved.node.refs == ["z"]
    assert moved.node.version == 4
    assert forest.get("w").refs == ["b"]
    assert forest.get("y").refs == []
    assert forest.get("y").version == before + 1
    assert forest.get("c").version == 3


def test_a_move_that_was_sent_twice_takes_effect_once(forest: Forest) -> None:
    forest.grow(": a b", "a: c d")
    forest.add_ref("c", "b")
    first = forest.move("c", "b", request_id="q")
    assert [(ref.node_id, ref.target_id) for ref in first.removed_refs] == [("c", "b")]
    assert forest.move("c", "b", request_id="q") == first
    forest.move("c", "a", 0)
    again = forest.move("c", "b", request_id="q")
    assert again.removed_refs == first.removed_refs
    assert again.node.version == first.node.version
    assert forest.get("c").parent_id == "a"
    with pytest.raises(RequestIdReused):
        forest.move("c", "b", 1, request_id="q")
