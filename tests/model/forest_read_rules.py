"""Rules that read the forest: every list, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from ramet.tree.v1 import tree_pb2 as t
from tests.model.base import IDS, known_nodes
from tests.model.forest_rules import ForestRules
from tests.model.session_rules import labels

page_sizes = st.integers(1, 4)


class ForestReadRules(ForestRules):
    """Reads the forest in every way."""

    @rule(node_id=known_nodes)
    def get_node(self, node_id: str) -> None:
        """Reads one node and its config."""
        node = self.node(node_id)
        faults = ["NODE_NOT_FOUND"] if node is None else []
        got = self.client.ask(self.tree.GetNode, t.GetNodeRequest(node_id=node_id), faults)
        config = self.client.ask(self.tree.GetConfig, t.GetConfigRequest(node_id=node_id), faults)
        if node is not None and got is not None and config is not None:
            self.compare_node(node, got)
            self.compare_config(node, config)

    @rule(node_id=known_nodes, page_size=page_sizes)
    def list_around(self, node_id: str, page_size: int) -> None:
        """Lists what stands around a node."""
        forest, there = self.forest, self.visible(node_id)
        siblings: list[str] = []
        if there and forest.nodes[node_id].parent is not None:
            siblings = [other for other in forest.children[forest.nodes[node_id].parent] if other != node_id]
        below = forest.ordered(forest.subtree(node_id)) if there else []
        lists: list[tuple[Any, Any, Sequence[str]]] = [
            (self.tree.ListChildren, t.ListChildrenRequest, forest.children[node_id] if there else []),
            (self.tree.GetAncestors, t.GetAncestorsRequest, forest.ancestors(node_id) if there else []),
            (self.tree.GetSiblings, t.GetSiblingsRequest, siblings),
            (self.tree.ListDescendants, t.ListDescendantsRequest, below[1:]),
            (self.tree.GetTree, t.GetTreeRequest, below),
        ]
        for method, kind, held in lists:
            request = kind(node_id=node_id, page_size=page_size)
            if there:
                self._compare_pages(method, request, held)
            else:
                self.client.ask(method, request, ["NODE_NOT_FOUND"])

    @rule(page_size=page_sizes, prefix=labels.map(lambda label: label[:2]), source=st.sampled_from(["", "main"]))
    def list_all(self, page_size: int, prefix: str, source: str) -> None:
        """Lists roots, and nodes through a filter."""
        self._compare_pages(self.tree.ListRoots, t.ListRootsRequest(page_size=page_size), self.forest.children[None])
        wanted = t.NodeFilter(label_prefix=prefix, source_session_id=source)
        held = [
            node.id
            for node in self.forest.nodes.values()
            if node.label.startswith(prefix) and source in ("", node.source)
        ]
        held.sort(key=str.encode)
        self._compare_pages(self.tree.ListNodes, t.ListNodesRequest(filter=wanted, page_size=page_size), held)
        self._compare_pages(
            self.tree.GetTree, t.GetTreeRequest(page_size=page_size), self.forest.ordered(self.forest.nodes)
        )

    def _compare_pages(self, method: Any, request: Any, held: Sequence[str]) -> None:
        """Reads a list to its end, and compares it with those of the nodes that readers see."""
        got: list[t.Node] = []
        while True:
            page = self.client.get(method, request)
            nodes = [entry.node for entry in page.entries] if isinstance(page, t.GetTreeResponse) else list(page.nodes)
            assert len(nodes) <= request.page_size
            got += nodes
            if not page.next_page_token:
                break
            request.page_token = page.next_page_token
        assert [node.id for node in got] == [node_id for node_id in held if self.visible(node_id)]
        for node in got:
            self.compare_node(self.forest.nodes[node.id], node, with_children=False)

    def check_everything(self) -> None:
        """Compares the whole forest with the model."""
        self.check_forest()
        for node_id in IDS[:3]:
            self.get_node(node_id)
