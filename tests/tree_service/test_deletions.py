"""Deleting nodes by each policy, and what becomes of refs and sessions."""

import pytest

from ramet.tree.v1 import tree_pb2 as pb
from ramet_server.domain.errors import InvalidField, NodeExists, NodeHasChildren, NodeNotFound, StaleVersion
from tests.tree_service.forest import Forest

CASCADE = pb.DELETE_POLICY_CASCADE
REPARENT = pb.DELETE_POLICY_REPARENT


def test_a_leaf_goes_and_its_siblings_close_ranks(forest: Forest) -> None:
    forest.grow(": p", "p: a b c")
    deleted = forest.delete("b")
    assert (deleted.deleted_count, deleted.deleted_node_ids) == (1, ["b"])
    assert [(e.node.id, e.node.index) for e in forest.entries()] == [("p", 0), ("a", 0), ("c", 1)]
    assert forest.get("p").child_count == 2


def test_roots_close_ranks(forest: Forest) -> None:
    forest.grow(": a b c")
    forest.delete("a")
    assert [(e.node.id, e.node.index) for e in forest.entries()] == [("b", 0), ("c", 1)]
    assert forest.create("d").index == 2


@pytest.mark.parametrize("policy", [pb.DELETE_POLICY_UNSPECIFIED, pb.DELETE_POLICY_REFUSE])
def test_a_parent_is_not_deleted_unless_a_policy_says_how(forest: Forest, policy: "pb.DeletePolicy.ValueType") -> None:
    forest.grow(": a", "a: b")
    with pytest.raises(NodeHasChildren):
        forest.delete("a", policy)
    assert forest.tree() == ["a", "b"]


def test_an_unknown_policy_is_refused(forest: Forest) -> None:
    forest.create("a")
    unknown = pb.DeleteNodeRequest.FromString(pb.DeleteNodeRequest(node_id="a").SerializeToString() + b"\x10\x63")
    with pytest.raises(InvalidField):
        forest.service.DeleteNode(unknown, forest.call)
    assert forest.tree() == ["a"]


def test_a_cascade_takes_everything_below(forest: Forest) -> None:
    forest.grow(": a b", "a: c d", "c: e f", "b: g")
    deleted = forest.delete("a", CASCADE)
    assert deleted.deleted_count == 5
    assert deleted.deleted_node_ids == ["a", "c", "d", "e", "f"]
    assert forest.tree() == ["b", "g"]


def test_children_take_the_place_of_their_parent(forest: Forest) -> None:
    forest.grow(": r", "r: a b c", "b: x y", "x: z")
    deleted = forest.delete("b", REPARENT)
    assert deleted.deleted_node_ids == ["b"]
    assert forest.children("r") == ["a", "x", "y", "c"]
    assert [(e.node.id, e.node.depth) for e in forest.entries("x")] == [("x", 1), ("z", 2)]
    assert forest.get("x").version == 2


def test_children_of_a_root_become_roots(forest: Forest) -> None:
    forest.grow(": a b c", "b: x y", "y: z")
    forest.delete("b", REPARENT)
    assert forest.roots() == ["a", "x", "y", "c"]
    assert not forest.get("x").HasField("parent_id")
    assert forest.get("z").depth == 1


@pytest.mark.parametrize("policy", [CASCADE, REPARENT])
def test_a_leaf_goes_by_any_policy(forest: Forest, policy: "pb.DeletePolicy.ValueType") -> None:
    forest.grow(": a b c")
    assert forest.delete("b", policy).deleted_count == 1
    assert forest.roots() == ["a", "c"]


def test_refs_from_and_to_deleted_nodes_go(forest: Forest) -> None:
    forest.grow(": a b", "a: c", "c: d")
    forest.add_ref("b", "c")
    forest.add_ref("b", "d")
    forest.add_ref("c", "b")
    version = forest.get("b").version
    forest.delete("c", CASCADE)
    assert forest.get("b").refs == []
    assert forest.get("b").version == version + 1


def test_reparenting_keeps_the_refs_of_the_children(forest: Forest) -> None:
    forest.grow(": a b", "a: c", "c: d")
    forest.add_ref("d", "b")
    forest.delete("c", REPARENT)
    assert forest.get("d").refs == ["b"]


def test_a_stale_version_or_an_unknown_node_is_refused(forest: Forest) -> None:
    forest.create("a")
    with pytest.raises(StaleVersion):
        forest.delete("a", expected_version=2)
    with pytest.raises(NodeNotFound):
        forest.delete("b")
    assert forest.roots() == ["a"]


def test_a_deletion_that_was_sent_twice_takes_effect_once(forest: Forest) -> None:
    forest.grow(": a", "a: b")
    first = forest.delete("a", CASCADE, request_id="q")
    forest.grow(": a", "a: b")
    assert forest.delete("a", CASCADE, request_id="q") == first
    assert forest.tree() == ["a", "b"]


def test_sessions_go_with_their_nodes_where_asked(forest: Forest) -> None:
    forest.grow(": a", "a: b c")
    origins = {session_id: forest.make_session(session_id) for session_id in ("a", "b")}
    forest.delete("c")
    assert forest.removals() == []
    forest.delete("a", CASCADE, delete_sessions=True)
    assert forest.removals() == sorted(origins.items())


def test_an_id_is_taken_until_its_session_is_gone(forest: Forest) -> None:
    forest.create("a")
    forest.make_session("a")
    forest.delete("a", delete_sessions=True)
    with pytest.raises(NodeExists):
        forest.create("a", awaits_content=True)
    forest.drop_session("a")
    forest.create("a", awaits_content=True)
    # The note of the old session must not stand in the way of the new one.
    forest.make_session("a")
    assert forest.roots() == ["a"]


def test_only_the_deleted_node_takes_its_session_along(forest: Forest) -> None:
    forest.grow(": a", "a: b")
    origin = forest.make_session("a")
    forest.make_session("b")
    forest.delete("a", REPARENT, delete_sessions=True)
    assert forest.removals() == [("a", origin)]


def test_a_later_session_of_the_same_id_is_noted_anew(forest: Forest) -> None:
    forest.create("a")
    forest.make_session("a")
    forest.delete("a", delete_sessions=True)
    forest.drop_session("a")
    forest.create("a")
    origin = forest.make_session("a")
    forest.delete("a", delete_sessions=True)
    assert forest.removals() == [("a", origin)]
