"""A node with more children than any page holds. One test, since a thousand calls are dear."""

from __future__ import annotations

from ramet.tree.v1 import tree_pb2 as pb
from ramet.tree.v1.tree_pb2_grpc import SessionTreeStub
from tests.conformance.tree.making import CASCADE, children, create, delete, get, nodes, siblings


class TestWideNodes:
    def test_a_thousand_and_two_children_are_paged_counted_and_deleted(self, tree: SessionTreeStub) -> None:
        create(tree, "a")
        names = [f"c{number:04}" for number in range(1002)]
        for name in names:
            create(tree, name, "a")
        node = get(tree, "a")
        assert list(node.children) == names[:1000]
        assert node.child_count == 1002
        assert children(tree, "a", page_size=400) == names
        assert siblings(tree, names[0], page_size=300) == names[1:]
        self.check_page_sizes(tree)
        reply = delete(tree, "a", CASCADE)
        assert (reply.deleted_count, len(reply.deleted_node_ids)) == (1003, 1000)
        assert nodes(tree) == []

    @staticmethod
    def check_page_sizes(tree: SessionTreeStub) -> None:
        """Pages are as large as the contract says, by default and at most."""
        assert len(tree.ListNodes(pb.ListNodesRequest()).nodes) == 100
        assert len(tree.ListNodes(pb.ListNodesRequest(page_size=5000)).nodes) == 1000
        assert len(tree.ListChildren(pb.ListChildrenRequest(node_id="a")).nodes) == 100
        assert len(tree.ListChildren(pb.ListChildrenRequest(node_id="a", page_size=5000)).nodes) == 1000
        assert len(tree.GetSiblings(pb.GetSiblingsRequest(node_id="c0500")).nodes) == 100
        assert len(tree.GetSiblings(pb.GetSiblingsRequest(node_id="c0500", page_size=5000)).nodes) == 1000
        assert len(tree.ListDescendants(pb.ListDescendantsRequest(node_id="a")).nodes) == 1000
        assert len(tree.ListDescendants(pb.ListDescendantsRequest(node_id="a", page_size=5000)).nodes) == 1002
        assert len(tree.GetTree(pb.GetTreeRequest()).entries) == 1000
        assert len(tree.GetTree(pb.GetTreeRequest(page_size=5000)).entries) == 1003
