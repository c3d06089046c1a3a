"""Nodes: created, read and renamed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import grpc
import pytest

from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from ramet.tree.v1 import tree_pb2 as pb
from ramet.tree.v1.tree_pb2_grpc import SessionTreeStub
from tests.conformance.refusing import bad_field, reason_of, refused, stale_version, too_large, unknown_node
from tests.conformance.session import making as storing
from tests.conformance.tree.making import children, create, get, grow, nodes, outline, roots


class TestCreatingNodes:
    def test_without_a_parent_it_is_a_root(self, tree: SessionTreeStub) -> None:
        made = create(tree, "a", label="Plan", source="somewhere")
        assert (made.id, made.label, made.source_session_id) == ("a", "Plan", "somewhere")
        assert not made.HasField("parent_id")
        assert (made.depth, made.index, made.child_count) == (0, 0, 0)
        assert (list(made.children), list(made.refs)) == ([], [])
        assert made.version > 0
        assert made.created_at == made.updated_at
        assert made.created_at.seconds > 0
        assert get(tree, "a") == made

    def test_many_roots_are_legal(self, tree: SessionTreeStub) -> None:
        for node_id in ("c", "a", "b"):
            create(tree, node_id)
        assert roots(tree) == ["c", "a", "b"]

    def test_with_a_parent_it_is_its_last_child(self, tree: SessionTreeStub) -> None:
        grow(tree, "a a/x a/y x/z")
        assert outline(tree) == "a(x(z) y)"
        parent = get(tree, "a")
        assert (list(parent.children), parent.child_count) == (["x", "y"], 2)
        assert (get(tree, "z").depth, get(tree, "y").index) == (2, 1)

    def test_without_an_id_the_server_makes_one(self, tree: SessionTreeStub) -> None:
        first, second = create(tree), create(tree)
        assert first.id
        assert first.id != second.id
        assert get(tree, first.id) == first

    def test_an_unknown_parent_is_refused_and_never_makes_a_root(self, tree: SessionTreeStub) -> None:
        """cloudflare/agents and stello: a node with an unknown parent must not become a root."""
        create(tree, "a")
        with unknown_node():
            create(tree, "b", "nobody")
        with unknown_node():
            create(tree, "c", "c")
        assert nodes(tree) == roots(tree) == ["a"]

    @pytest.mark.parametrize("parent", ["", " ", "é"])
    def test_a_parent_that_is_no_id_is_refused_and_never_makes_a_root(self, tree: SessionTreeStub, parent: str) -> None:
        with bad_field("parent_id"):
            create(tree, "b", parent)
        assert nodes(tree) == []

    def test_a_taken_id_is_refused(self, tree: SessionTreeStub) -> None:
        create(tree, "a", label="first")
        with refused(grpc.StatusCode.ALREADY_EXISTS, "NODE_EXISTS"):
            create(tree, "a", label="second")
        assert get(tree, "a").label == "first"
        assert create(tree, "b").index == 1

    def test_ids_are_compared_byte_for_byte(self, tree: SessionTreeStub) -> None:
        """agentscope-java#3217: `Abc`, `abc` and `ABC` are three nodes, and three parents."""
        for node_id in ("Abc", "abc", "ABC"):
            create(tree, node_id)
            create(tree, f"under {node_id}", node_id)
        for node_id in ("Abc", "abc", "ABC"):
            assert children(tree, node_id) == [f"under {node_id}"]

    def test_the_source_need_not_exist(self, tree: SessionTreeStub) -> None:
        assert create(tree, "a", source="gone").source_session_id == "gone"
        with bad_field("source_session_id"):
            create(tree, "b", source=" ")

    def test_eight_children_at_once_get_indexes_without_a_gap(self, tree: SessionTreeStub) -> None:
        """stello: eight parallel children of one parent get the indexes 0 to 7, none lost."""
        create(tree, "a")
        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(lambda number: create(tree, f"c{number}", "a"), range(8)))
        assert sorted(node.index for node in made) == list(range(8))
        assert sorted(children(tree, "a")) == [f"c{number}" for number in range(8)]

    def test_roots_at_once_get_indexes_without_a_gap(self, tree: SessionTreeStub) -> None:
        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(lambda number: create(tree, f"r{number}"), range(16)))
        assert sorted(node.index for node in made) == list(range(16))
        assert sorted(roots(tree)) == sorted(f"r{number}" for number in range(16))

    def test_the_same_id_at_once_is_made_once(self, tree: SessionTreeStub) -> None:
        with ThreadPoolExecutor(6) as pool:
            reasons = pool.map(reason_of, [partial(create, tree, "a")] * 6)
        assert sorted(map(str, reasons)) == ["NODE_EXISTS"] * 5 + ["None"]
        assert roots(tree) == ["a"]

    def test_a_tree_may_be_used_alone(self, tree: SessionTreeStub, storage: SessionStorageStub) -> None:
        create(tree, "a")
        assert get(tree, "a").id == "a"
        with refused(grpc.StatusCode.NOT_FOUND, "SESSION_NOT_FOUND"):
            storing.get(storage, "a")


class TestReadingNodes:
    def test_an_unknown_node_is_not_found(self, tree: SessionTreeStub) -> None:
        with unknown_node():
            get(tree, "nobody")


class TestRenamingNodes:
    def test_a_label_changes_and_counts_the_version(self, tree: SessionTreeStub) -> None:
        made = create(tree, "a", label="old")
        changed = tree.UpdateNode(pb.UpdateNodeRequest(node_id="a", label="新 👋"))
        assert changed.label == "新 👋"
        assert changed.version == made.version + 1
        assert changed.updated_at.ToNanoseconds() > made.updated_at.ToNanoseconds()
        assert changed.created_at == made.created_at
        assert get(tree, "a") == changed

    def test_a_label_may_be_emptied_but_must_be_given(self, tree: SessionTreeStub) -> None:
        create(tree, "a", label="old")
        with bad_field("label"):
            tree.UpdateNode(pb.UpdateNodeRequest(node_id="a"))
        assert get(tree, "a").label == "old"
        assert tree.UpdateNode(pb.UpdateNodeRequest(node_id="a", label="")).label == ""

    def test_a_delayed_rename_with_an_old_version_is_refused(self, tree: SessionTreeStub) -> None:
        """langgraph#8810: a delayed write with an old version is refused."""
        made = create(tree, "a")
        newer = tree.UpdateNode(pb.UpdateNodeRequest(node_id="a", label="newer", expected_version=made.version))
        with stale_version() as refusal:
            tree.UpdateNode(pb.UpdateNodeRequest(node_id="a", label="delayed", expected_version=made.version))
        assert refusal.metadata["current"] == str(newer.version)
        assert get(tree, "a") == newer

    def test_an_unknown_node_is_not_found(self, tree: SessionTreeStub) -> None:
        with unknown_node():
            tree.UpdateNode(pb.UpdateNodeRequest(node_id="nobody", label="x"))

    def test_a_write_tells_the_whole_node(self, tree: SessionTreeStub) -> None:
        grow(tree, "a a/x b")
        tree.AddRef(pb.AddRefRequest(node_id="a", target_id="b"))
        changed = tree.UpdateNode(pb.UpdateNodeRequest(node_id="a", label="new"))
        assert (list(changed.children), list(changed.refs), changed.child_count) == (["x"], ["b"], 1)


class TestNodeLimits:
    @pytest.mark.parametrize("length", [128, 129, 150, 255, 300])
    def test_ids_have_up_to_128_characters(self, tree: SessionTreeStub, length: int) -> None:
        """langgraph-checkpoint-mysql#39: stored whole, or refused with field and limit."""
        node_id = "n" * length
        if length <= 128:
            create(tree, node_id)
            create(tree, "child", node_id)
            assert get(tree, "child").parent_id == node_id
        else:
            with too_large(128, names="session_id"):
                create(tree, node_id)
            with too_large(128, names="parent_id"):
                create(tree, "x", node_id)
            with too_large(128, names="node_id"):
                get(tree, node_id)

    @pytest.mark.parametrize("length", [150, 255, 256, 257, 300])
    def test_labels_have_up_to_256_characters(self, tree: SessionTreeStub, length: int) -> None:
        """langgraph-checkpoint-mysql#39: stored whole, or refused with field and limit."""
        label = "😀" * length
        if length <= 256:
            create(tree, "a", label=label)
            assert get(tree, "a").label == label
        else:
            with too_large(256, names="label"):
                create(tree, "a", label=label)
            create(tree, "a")
            with too_large(256, names="label"):
                tree.UpdateNode(pb.UpdateNodeRequest(node_id="a", label=label))

    def test_nul_in_a_label_is_refused(self, tree: SessionTreeStub) -> None:
        """langgraph#1878: NUL gets the same answer on every backend."""
        with bad_field("label"):
            create(tree, "a", label="a\x00b")
        create(tree, "a")
        with bad_field("label"):
            tree.UpdateNode(pb.UpdateNodeRequest(node_id="a", label="a\x00b"))

    @pytest.mark.parametrize("node_id", [" a", "a ", "a\nb", "a\x00", "é", "计"])
    def test_ids_of_other_characters_are_refused(self, tree: SessionTreeStub, node_id: str) -> None:
        with bad_field("session_id"):
            create(tree, node_id)
        with bad_field("node_id"):
            get(tree, node_id)

    def test_an_empty_id_is_refused_where_one_is_required(self, tree: SessionTreeStub) -> None:
        with bad_field("node_id"):
            get(tree, "")
