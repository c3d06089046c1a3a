"""Lists of nodes: by id, by index, and their pages."""

from __future__ import annotations

from collections.abc import Callable

import grpc
import pytest

from ramet.tree.v1 import tree_pb2 as pb
from ramet.tree.v1.tree_pb2_grpc import SessionTreeStub
from tests.conformance.refusing import bad_field, bad_page_token, refused, unknown_node
from tests.conformance.tree.making import (
    ancestors,
    children,
    create,
    delete,
    descendants,
    entries,
    get,
    grow,
    nodes,
    paged,
    roots,
    siblings,
)

FOREST = "a b a/c a/d b/e c/f c/g f/h"


def matching(tree: SessionTreeStub, page_size: int = 0, **conditions: str) -> list[str]:
    """The ids of the nodes that a filter admits."""
    request = pb.ListNodesRequest(filter=pb.NodeFilter(**conditions), page_size=page_size)

    def ask(token: str) -> pb.ListNodesResponse:
        request.page_token = token
        return tree.ListNodes(request)

    return [node.id for page in paged(ask) for node in page.nodes]


class TestLists:
    @pytest.mark.parametrize("page_size", [0, 1, 2, 3])
    def test_every_list_is_whole_at_every_page_size(self, tree: SessionTreeStub, page_size: int) -> None:
        grow(tree, FOREST)
        assert nodes(tree, page_size) == list("abcdefgh")
        assert roots(tree, page_size) == ["a", "b"]
        assert children(tree, "a", page_size) == ["c", "d"]
        assert children(tree, "h", page_size) == []
        assert siblings(tree, "c", page_size) == ["d"]
        assert siblings(tree, "e", page_size) == []
        assert ancestors(tree, "h", page_size) == ["f", "c", "a"]
        assert ancestors(tree, "a", page_size) == []
        assert descendants(tree, "a", page_size) == ["c", "d", "f", "g", "h"]
        assert descendants(tree, "d", page_size) == []
        assert [entry.node.id for entry in entries(tree, None, page_size)] == list("abcdefgh")
        assert [entry.node.id for entry in entries(tree, "c", page_size)] == ["c", "f", "g", "h"]

    def test_a_root_has_no_siblings(self, tree: SessionTreeStub) -> None:
        grow(tree, "a b c")
        assert siblings(tree, "b") == []

    def test_siblings_come_by_index_without_the_node_itself(self, tree: SessionTreeStub) -> None:
        grow(tree, "a a/z a/y a/x a/w")
        assert siblings(tree, "y") == ["z", "x", "w"]
        assert siblings(tree, "y", page_size=1) == ["z", "x", "w"]

    def test_nodes_come_by_id_byte_for_byte(self, tree: SessionTreeStub) -> None:
        ids = ["b", "A", "a", "B", "a b", "~", "!", "_", "a.b"]
        for node_id in ids:
            create(tree, node_id)
        assert nodes(tree) == nodes(tree, 2) == sorted(ids)

    def test_descendants_come_by_depth_then_parent_then_index(self, tree: SessionTreeStub) -> None:
        grow(tree, "r r/b r/a b/z b/y a/x a/w B r/A A/v")
        assert descendants(tree, "r") == ["b", "a", "A", "v", "x", "w", "z", "y"]
        assert descendants(tree, "r", 3) == descendants(tree, "r")
        assert [entry.node.id for entry in entries(tree)] == ["r", "B", "b", "a", "A", "v", "x", "w", "z", "y"]

    def test_lists_leave_the_ids_of_children_to_get_node(self, tree: SessionTreeStub) -> None:
        grow(tree, "a a/b")
        [listed] = tree.ListRoots(pb.ListRootsRequest()).nodes
        assert list(listed.children) == []
        whole = get(tree, "a")
        assert list(whole.children) == ["b"]
        whole.ClearField("children")
        assert listed == whole

    def test_lists_tell_refs(self, tree: SessionTreeStub) -> None:
        grow(tree, "a b c")
        for target in ("c", "b"):
            tree.AddRef(pb.AddRefRequest(node_id="a", target_id=target))
        for listed in (tree.ListRoots(pb.ListRootsRequest()).nodes, tree.ListNodes(pb.ListNodesRequest()).nodes):
            assert list(listed[0].refs) == ["c", "b"]

    @pytest.mark.parametrize("ask", [children, siblings, ancestors, descendants, entries])
    def test_lists_of_an_unknown_node_are_not_found(
        self, tree: SessionTreeStub, ask: Callable[[SessionTreeStub, str], object]
    ) -> None:
        with unknown_node():
            ask(tree, "nobody")

    def test_an_empty_space_has_an_empty_forest(self, tree: SessionTreeStub) -> None:
        assert nodes(tree) == roots(tree) == entries(tree) == []


class TestNodeFilters:
    @pytest.mark.parametrize("prefix", ["a", "A", "a%", "a_", "é", "e", "计", "a ", "😀"])
    def test_a_label_prefix_is_compared_exactly(self, tree: SessionTreeStub, prefix: str) -> None:
        labels = ["a", "A", "a%b", "axb", "a_b", "élan", "elan", "计划", "a b", "😀!", "ab", "Ab", ""]
        for number, label in enumerate(labels):
            create(tree, f"n{number:02}", label=label)
        expected = [f"n{number:02}" for number, label in enumerate(labels) if label.startswith(prefix)]
        assert matching(tree, label_prefix=prefix) == matching(tree, 1, label_prefix=prefix) == expected

    def test_by_source(self, tree: SessionTreeStub) -> None:
        create(tree, "a")
        create(tree, "b", source="a")
        create(tree, "c", source="A")
        create(tree, "d", source="a", label="x")
        assert matching(tree, source_session_id="a") == ["b", "d"]
        assert matching(tree, 1, source_session_id="a") == ["b", "d"]
        assert matching(tree, source_session_id="a", label_prefix="x") == ["d"]

    @pytest.mark.parametrize("value", ["x') OR 1=1 --", "x' OR '1'='1", "%"])
    def test_a_filter_value_is_only_a_value(self, tree: SessionTreeStub, value: str) -> None:
        """langgraph#5666: a filter value such as `x') OR 1=1 --` has no effect on the query."""
        create(tree, "a", label="x", source="x")
        assert matching(tree, label_prefix=value) == matching(tree, source_session_id=value) == []

    def test_an_unknown_filter_field_is_refused(self, tree: SessionTreeStub) -> None:
        """langgraph#5666: a condition that the server does not know must not be answered with everything."""
        create(tree, "a")
        unknown = pb.NodeFilter.FromString(b"\xf2\x07\x01x")  # field 126, of a later contract
        with refused(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD", names="filter"):
            tree.ListNodes(pb.ListNodesRequest(filter=unknown))


class TestNodePages:
    @pytest.mark.parametrize("token", ["x", "!!!", "e30", "W10", "0" * 5000])
    def test_a_damaged_token_is_refused(self, tree: SessionTreeStub, token: str) -> None:
        grow(tree, "a a/b")
        with bad_page_token():
            tree.ListNodes(pb.ListNodesRequest(page_token=token))
        with bad_page_token():
            tree.ListRoots(pb.ListRootsRequest(page_token=token))
        with bad_page_token():
            tree.ListChildren(pb.ListChildrenRequest(node_id="a", page_token=token))
        with bad_page_token():
            tree.GetSiblings(pb.GetSiblingsRequest(node_id="b", page_token=token))
        with bad_page_token():
            tree.GetAncestors(pb.GetAncestorsRequest(node_id="b", page_token=token))
        with bad_page_token():
            tree.ListDescendants(pb.ListDescendantsRequest(node_id="a", page_token=token))
        with bad_page_token():
            tree.GetTree(pb.GetTreeRequest(page_token=token))

    def test_a_token_of_another_list_is_refused(self, tree: SessionTreeStub) -> None:
        grow(tree, "a a/b a/c b/d b/e")
        token = tree.ListChildren(pb.ListChildrenRequest(node_id="a", page_size=1)).next_page_token
        with bad_page_token():
            tree.ListChildren(pb.ListChildrenRequest(node_id="b", page_token=token))
        with bad_page_token():
            tree.ListRoots(pb.ListRootsRequest(page_token=token))
        token = tree.ListNodes(pb.ListNodesRequest(page_size=1)).next_page_token
        with bad_page_token():
            tree.ListNodes(pb.ListNodesRequest(filter=pb.NodeFilter(label_prefix="x"), page_token=token))

    def test_negative_page_sizes_are_refused(self, tree: SessionTreeStub) -> None:
        create(tree, "a")
        with bad_field("page_size"):
            tree.ListNodes(pb.ListNodesRequest(page_size=-1))
        with bad_field("page_size"):
            tree.GetTree(pb.GetTreeRequest(page_size=-1))
        with bad_field("page_size"):
            tree.GetAncestors(pb.GetAncestorsRequest(node_id="a", page_size=-1))

    def test_a_list_by_id_goes_on_where_its_node_was_deleted(self, tree: SessionTreeStub) -> None:
        grow(tree, "a b c")
        token = tree.ListNodes(pb.ListNodesRequest(page_size=1)).next_page_token
        delete(tree, "a")
        page = tree.ListNodes(pb.ListNodesRequest(page_token=token))
        assert [node.id for node in page.nodes] == ["b", "c"]
