"""A chain 5,000 deep: everything that follows a line must be complete."""

import pytest

from ramet.tree.v1 import tree_pb2 as pb
from ramet_server.domain.errors import IllegalRef, MoveMakesCycle
from tests.tree_service.bulk import chain, name, plant
from tests.tree_service.forest import Forest

DEPTH = 5000
TOP = name(0)
BOTTOM = name(DEPTH - 1)
ALL = [name(depth) for depth in range(DEPTH)]


@pytest.fixture
def deep(forest: Forest) -> Forest:
    """A chain of 5,000 nodes."""
    plant(forest, chain(DEPTH))
    return forest


def test_lists_of_a_deep_chain_are_complete(deep: Forest) -> None:
    assert deep.ancestors(BOTTOM) == ALL[-2::-1]
    assert deep.ancestors(BOTTOM, 10_000) == ALL[-2::-1]
    assert deep.descendants(TOP) == ALL[1:]
    assert deep.tree(TOP, 10_000) == ALL
    assert deep.tree() == ALL


def test_a_deep_chain_moves_whole(deep: Forest) -> None:
    deep.create("other")
    deep.create("deeper", "other")
    deep.add_ref("deeper", BOTTOM)
    moved = deep.move(TOP, "deeper")
    assert [(ref.node_id, ref.target_id) for ref in moved.removed_refs] == [("deeper", BOTTOM)]
    assert deep.get(BOTTOM).depth == DEPTH + 1
    assert deep.ancestors(BOTTOM) == [*ALL[-2::-1], "deeper", "other"]
    deep.move(name(2500))
    assert deep.get(BOTTOM).depth == DEPTH - 2501
    assert deep.roots() == ["other", name(2500)]


def test_cycles_and_refs_are_found_at_any_distance(deep: Forest) -> None:
    with pytest.raises(MoveMakesCycle):
        deep.move(TOP, BOTTOM)
    with pytest.raises(IllegalRef):
        deep.add_ref(TOP, BOTTOM)
    with pytest.raises(IllegalRef):
        deep.add_ref(BOTTOM, TOP)
    deep.create("child", BOTTOM)
    assert deep.get("child").depth == DEPTH


def test_a_deep_chain_closes_up_or_goes_whole(deep: Forest) -> None:
    deep.delete(TOP, pb.DELETE_POLICY_REPARENT)
    assert deep.get(BOTTOM).depth == DEPTH - 2
    deleted = deep.delete(ALL[1], pb.DELETE_POLICY_CASCADE)
    assert deleted.deleted_count == DEPTH - 1
    assert list(deleted.deleted_node_ids) == ALL[1:1001]
    assert deep.tree() == []
