"""Cross references."""

from datetime import UTC, datetime, timedelta

import pytest

from ramet_server.domain.errors import IllegalRef, NodeNotFound
from tests.tree_service.forest import Forest


def test_refs_keep_the_order_in_which_they_were_added(forest: Forest) -> None:
    forest.grow(": a z m b")
    # A clock that stands still, then goes back, must not change the order.
    forest.clock.stopped = datetime(2026, 1, 1, tzinfo=UTC)
    forest.add_ref("a", "z")
    forest.add_ref("a", "m")
    forest.clock.ahead = timedelta(seconds=-5)
    assert forest.add_ref("a", "b").refs == ["z", "m", "b"]
    assert forest.get("a").refs == ["z", "m", "b"]
    assert [list(entry.node.refs) for entry in forest.entries()] == [["z", "m", "b"], [], [], []]


def test_adding_and_removing_is_idempotent_and_counts_changes(forest: Forest) -> None:
    forest.grow(": a b")
    assert forest.add_ref("a", "b").version == 2
    assert forest.add_ref("a", "b").version == 2
    assert forest.remove_ref("a", "b").version == 3
    assert forest.remove_ref("a", "b").version == 3
    assert forest.remove_ref("a", "nobody").version == 3
    assert forest.get("b").version == 1


def test_two_nodes_may_refer_to_each_other_across_trees(forest: Forest) -> None:
    forest.grow(": a b", "a: c", "b: d")
    assert forest.add_ref("c", "d").refs == ["d"]
    assert forest.add_ref("d", "c").refs == ["c"]
    assert forest.add_ref("c", "b").refs == ["d", "b"]


@pytest.mark.parametrize("target_id", ["a", "b", "c", "d", "e"])
def test_a_ref_within_a_line_is_refused(forest: Forest, target_id: str) -> None:
    forest.grow(": a", "a: b", "b: c", "c: d", "d: e")
    with pytest.raises(IllegalRef):
        forest.add_ref("c", target_id)
    assert forest.get("c").refs == []
    assert forest.get("c").version == 1


def test_refs_need_both_nodes(forest: Forest) -> None:
    forest.create("a")
    with pytest.raises(NodeNotFound):
        forest.add_ref("a", "nobody")
    with pytest.raises(NodeNotFound):
        forest.add_ref("nobody", "a")
    with pytest.raises(NodeNotFound):
        forest.remove_ref("nobody", "a")


def test_a_ref_that_was_sent_twice_is_added_once(forest: Forest) -> None:
    forest.grow(": a b")
    first = forest.add_ref("a", "b", request_id="q")
    forest.remove_ref("a", "b")
    assert forest.add_ref("a", "b", request_id="q").version == first.version
    assert forest.get("a").refs == []
