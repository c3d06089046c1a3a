"""Creating, reading and labelling nodes."""

import pytest

from ramet.tree.v1 import tree_pb2 as pb
from ramet_server.domain.errors import (
    InvalidField,
    NodeExists,
    NodeNotFound,
    RequestIdReused,
    StaleVersion,
    TooLarge,
)
from tests.tree_service.forest import Forest


def test_roots_and_children_count_from_0(forest: Forest) -> None:
    forest.grow(": a b", "a: c d", "c: e")
    assert [(e.node.id, e.node.depth, e.node.index) for e in forest.entries()] == [
        ("a", 0, 0),
        ("b", 0, 1),
        ("c", 1, 0),
        ("d", 1, 1),
        ("e", 2, 0),
    ]


def test_a_node_is_answered_whole(forest: Forest) -> None:
    forest.create("a")
    made = forest.create("b", "a", label="Größe 🌱", source_session_id="elsewhere")
    assert (made.id, made.parent_id, made.depth, made.index) == ("b", "a", 1, 0)
    assert (made.label, made.source_session_id, made.version, made.child_count) == ("Größe 🌱", "elsewhere", 1, 0)
    assert made.created_at == made.updated_at
    assert forest.get("b") == made
    assert not forest.get("a").HasField("parent_id")
    assert forest.get("a").children == ["b"]
    assert forest.get("a").child_count == 1


def test_an_id_is_made_where_none_is_given(forest: Forest) -> None:
    made = forest.service.CreateSession(pb.CreateSessionRequest(), forest.call)
    assert len(made.id) == 32
    assert forest.roots() == [made.id]


def test_a_child_does_not_change_the_version_of_its_parent(forest: Forest) -> None:
    forest.grow(": a", "a: b")
    assert forest.get("a").version == 1


@pytest.mark.parametrize("parent_id", ["nobody", "A"])
def test_an_unknown_parent_is_refused_and_makes_no_root(forest: Forest, parent_id: str) -> None:
    forest.create("a")
    with pytest.raises(NodeNotFound):
        forest.create("b", parent_id)
    assert forest.tree() == ["a"]


def test_an_empty_parent_is_refused_and_makes_no_root(forest: Forest) -> None:
    with pytest.raises(InvalidField):
        forest.create("b", "")
    assert forest.tree() == []


def test_a_taken_id_is_refused(forest: Forest) -> None:
    forest.grow(": a", "a: b")
    with pytest.raises(NodeExists):
        forest.create("b")
    assert forest.tree() == ["a", "b"]


def test_ids_are_compared_byte_for_byte(forest: Forest) -> None:
    forest.grow(": Abc abc ABC")
    assert forest.roots() == ["Abc", "abc", "ABC"]
    assert forest.nodes() == ["ABC", "Abc", "abc"]


def test_a_repeated_create_answers_with_the_first_node(forest: Forest) -> None:
    first = forest.create("", request_id="q")
    assert forest.create("", request_id="q") == first
    assert forest.roots() == [first.id]
    with pytest.raises(RequestIdReused):
        forest.create("", request_id="q", label="other")


def test_a_repeated_create_answers_after_later_changes_with_the_first_version(forest: Forest) -> None:
    forest.create("a", request_id="q")
    forest.relabel("a", "later")
    again = forest.create("a", request_id="q")
    assert (again.id, again.version) == ("a", 1)
    forest.delete("a")
    with pytest.raises(NodeNotFound):
        forest.create("a", request_id="q")
    assert forest.roots() == []


def test_a_label_is_changed(forest: Forest) -> None:
    forest.create("a", label="old")
    changed = forest.relabel("a", "new", expected_version=1)
    assert (changed.label, changed.version) == ("new", 2)
    assert changed.updated_at.ToDatetime() > changed.created_at.ToDatetime()
    assert forest.get("a") == changed
    assert forest.relabel("a", "").label == ""


def test_a_stale_version_is_refused_and_told(forest: Forest) -> None:
    forest.create("a")
    forest.relabel("a", "x")
    with pytest.raises(StaleVersion) as refused:
        forest.relabel("a", "y", expected_version=1)
    assert refused.value.details == {"current": "2"}
    assert forest.get("a").label == "x"


def test_a_label_is_required(forest: Forest) -> None:
    forest.create("a")
    with pytest.raises(InvalidField):
        forest.service.UpdateNode(pb.UpdateNodeRequest(node_id="a"), forest.call)


def test_a_label_has_256_characters_at_most(forest: Forest) -> None:
    assert forest.create("a", label="🌱" * 256).label == "🌱" * 256
    with pytest.raises(TooLarge):
        forest.create("b", label="x" * 257)
    with pytest.raises(TooLarge):
        forest.relabel("a", "🌱" * 257)


@pytest.mark.parametrize("bad", [" a", "a ", "ä", "a\n", "x" * 129])
def test_bad_ids_are_refused_everywhere(forest: Forest, bad: str) -> None:
    refused = (InvalidField, TooLarge)
    with pytest.raises(refused):
        forest.create(bad)
    with pytest.raises(refused):
        forest.create("a", bad)
    with pytest.raises(refused):
        forest.create("a", source_session_id=bad)
    with pytest.raises(refused):
        forest.create("a", request_id=bad)
    with pytest.raises(refused):
        forest.get(bad)
    assert forest.tree() == []


def test_spaces_do_not_meet(forest: Forest) -> None:
    forest.create("a", label="mine")
    other = Forest(forest.database, type(forest.call)(f"{forest.call.space}-2"), forest.limits, forest.clock)
    with pytest.raises(NodeNotFound):
        other.get("a")
    other.create("a", label="theirs")
    other.delete("a")
    assert forest.get("a").label == "mine"
    assert other.tree() == []
