"""Cross references: between nodes that are not above or below each other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from ramet.tree.v1 import tree_pb2 as pb
from ramet.tree.v1.tree_pb2_grpc import SessionTreeStub
from tests.conformance.refusing import refused, unknown_node
from tests.conformance.tree.making import add_ref, create, get, grow


def remove_ref(tree: SessionTreeStub, node_id: str, target: str) -> pb.Node:
    """Remove a cross reference."""
    return tree.RemoveRef(pb.RemoveRefRequest(node_id=node_id, target_id=target))


class TestRefs:
    def test_they_come_in_the_order_in_which_they_were_added(self, tree: SessionTreeStub) -> None:
        grow(tree, "a z m b")
        for target in ("z", "b", "m"):
            node = add_ref(tree, "a", target)
        assert list(node.refs) == list(get(tree, "a").refs) == ["z", "b", "m"]
        assert list(get(tree, "z").refs) == []

    def test_each_counts_the_version_of_the_node_that_refers(self, tree: SessionTreeStub) -> None:
        grow(tree, "a b")
        before, target = get(tree, "a"), get(tree, "b")
        added = add_ref(tree, "a", "b")
        assert added.version == before.version + 1
        removed = remove_ref(tree, "a", "b")
        assert removed.version == before.version + 2
        assert list(removed.refs) == []
        assert get(tree, "b") == target

    def test_adding_again_changes_nothing(self, tree: SessionTreeStub) -> None:
        grow(tree, "a b c")
        add_ref(tree, "a", "b")
        once = add_ref(tree, "a", "c")
        assert add_ref(tree, "a", "b") == once

    def test_removing_one_that_is_not_there_changes_nothing(self, tree: SessionTreeStub) -> None:
        grow(tree, "a b")
        before = get(tree, "a")
        assert remove_ref(tree, "a", "b") == before
        assert remove_ref(tree, "a", "gone") == before

    def test_both_ways_are_two_refs(self, tree: SessionTreeStub) -> None:
        grow(tree, "a b")
        add_ref(tree, "a", "b")
        add_ref(tree, "b", "a")
        remove_ref(tree, "a", "b")
        assert list(get(tree, "b").refs) == ["a"]

    def test_siblings_cousins_and_other_trees_may_be_referred_to(self, tree: SessionTreeStub) -> None:
        grow(tree, "a a/b a/c b/d c/e x")
        for target in ("c", "e", "x"):
            add_ref(tree, "b", target)
        assert list(get(tree, "b").refs) == ["c", "e", "x"]

    @pytest.mark.parametrize(("node", "target"), [("b", "b"), ("b", "a"), ("c", "a"), ("a", "b"), ("a", "c")])
    def test_itself_ancestors_and_descendants_are_refused(self, tree: SessionTreeStub, node: str, target: str) -> None:
        grow(tree, "a a/b b/c")
        with refused(grpc.StatusCode.FAILED_PRECONDITION, "ILLEGAL_REF"):
            add_ref(tree, node, target)
        assert list(get(tree, node).refs) == []

    def test_unknown_ends_are_not_found(self, tree: SessionTreeStub) -> None:
        create(tree, "a")
        with unknown_node():
            add_ref(tree, "a", "nobody")
        with unknown_node():
            add_ref(tree, "nobody", "a")
        with unknown_node():
            remove_ref(tree, "nobody", "a")

    def test_added_by_many_at_once_each_is_there_once(self, tree: SessionTreeStub) -> None:
        names = [f"t{number}" for number in range(4)]
        grow(tree, " ".join(["a", *names]))
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda target: add_ref(tree, "a", target), names * 3))
        assert sorted(get(tree, "a").refs) == names
