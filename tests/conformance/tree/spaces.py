"""Spaces: every node belongs to one, and nothing crosses from one to another."""

from __future__ import annotations

import pytest

from ramet.tree.v1 import tree_pb2 as pb
from ramet.tree.v1.tree_pb2_grpc import SessionTreeStub
from tests.conformance.backends import Backend
from tests.conformance.calling import within
from tests.conformance.refusing import unknown_node
from tests.conformance.tree.making import CASCADE, add_ref, create, delete, get, grow, move, nodes, outline


class TestTreeSpaces:
    @pytest.fixture
    def other(self, backend: Backend, space: str) -> SessionTreeStub:
        """The same service, within another space of the test's own."""
        return SessionTreeStub(within(backend.channel, f"{space}-other"))

    def test_the_same_id_in_two_spaces_is_two_nodes(self, tree: SessionTreeStub, other: SessionTreeStub) -> None:
        """adk-python#1641: two spaces both use `main`; no reads, counts or deletes across."""
        for here, name in ((tree, "one"), (other, "two")):
            create(here, "main", label=name, config=pb.Config(system_prompt=name))
            create(here, name, "main")
        for here, name in ((tree, "one"), (other, "two")):
            assert outline(here) == f"main({name})"
            assert get(here, "main").label == name
            assert tree.GetConfig(pb.GetConfigRequest(node_id="main")).system_prompt == "one"
            assert create(here, f"root of {name}").index == 1
        delete(tree, "main", CASCADE)
        assert nodes(tree) == ["root of one"]
        assert outline(other) == "main(two) root of two"

    def test_nothing_of_another_space_can_be_a_parent_or_a_target(
        self, tree: SessionTreeStub, other: SessionTreeStub
    ) -> None:
        create(tree, "here")
        create(other, "there")
        with unknown_node():
            create(tree, "x", "there")
        with unknown_node():
            move(tree, "here", "there")
        with unknown_node():
            add_ref(tree, "here", "there")
        with unknown_node():
            get(tree, "there")

    def test_moves_and_deletions_shift_only_their_own_space(
        self, tree: SessionTreeStub, other: SessionTreeStub
    ) -> None:
        for here in (tree, other):
            grow(here, "a b c b/x")
        add_ref(other, "a", "c")
        move(tree, "c", "a")
        delete(tree, "b", CASCADE)
        assert outline(tree) == "a(c)"
        assert outline(other) == "a b(x) c"
        assert list(get(other, "a").refs) == ["c"]
