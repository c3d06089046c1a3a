"""The model of SessionTree: a forest as dictionaries of lists."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field


@dataclass
class Config:
    """A frozen config; None: not set."""

    system_prompt: str | None = None
    skills: list[str] | None = None
    version: int = 0


@dataclass
class Node:
    """A place in the forest."""

    id: str
    parent: str | None
    label: str = ""
    source: str = ""
    awaits: bool = False
    version: int = 1
    refs: list[str] = field(default_factory=list)
    config: Config = field(default_factory=Config)


@dataclass
class Forest:
    """All nodes, and the order of the children of each; the roots are the children of None."""

    nodes: dict[str, Node] = field(default_factory=dict)
    children: dict[str | None, list[str]] = field(default_factory=lambda: {None: []})

    def add(self, node: Node) -> None:
        """Adds a node as the last child of its parent."""
        self.nodes[node.id] = node
        self.children[node.id] = []
        self.children[node.parent].append(node.id)

    def ancestors(self, node_id: str) -> list[str]:
        """Returns the ids of the ancestors, parent first."""
        found: list[str] = []
        parent = self.nodes[node_id].parent
        while parent is not None:
            found.append(parent)
            parent = self.nodes[parent].parent
        return found

    def depth(self, node_id: str) -> int:
        """Returns 0 for a root."""
        return len(self.ancestors(node_id))

    def index(self, node_id: str) -> int:
        """Returns the place among the siblings."""
        return self.children[self.nodes[node_id].parent].index(node_id)

    def subtree(self, node_id: str) -> list[str]:
        """Returns the node and everything below it."""
        return [node_id, *(below for child in self.children[node_id] for below in self.subtree(child))]

    def ordered(self, wanted: Collection[str]) -> list[str]:
        """Returns nodes by depth, parent, index."""
        return sorted(
            wanted,
            key=lambda node_id: (
                self.depth(node_id),
                (self.nodes[node_id].parent or "").encode(),
                self.index(node_id),
            ),
        )

    def move(self, node_id: str, parent: str | None, index: int | None) -> list[tuple[str, str]]:
        """Moves a node; returns the refs that became illegal and are gone."""
        node = self.nodes[node_id]
        self.children[node.parent].remove(node_id)
        node.parent = parent
        siblings = self.children[parent]
        siblings.insert(len(siblings) if index is None else min(index, len(siblings)), node_id)
        illegal = [
            (other.id, target)
            for other in self.nodes.values()
            for target in other.refs
            if self.related(other.id, target)
        ]
        for owner, target in illegal:
            self.nodes[owner].refs.remove(target)
        return illegal

    def related(self, one: str, other: str) -> bool:
        """Tells whether a ref between two nodes is illegal."""
        return one == other or one in self.ancestors(other) or other in self.ancestors(one)

    def remove(self, gone: Collection[str]) -> set[str]:
        """Removes nodes whose children are gone or moved away; returns the owners of refs that pointed at them."""
        owners = set()
        for node_id in gone:
            self.children[self.nodes[node_id].parent].remove(node_id)
        for node_id in gone:
            del self.nodes[node_id], self.children[node_id]
        for node in self.nodes.values():
            if any(target in gone for target in node.refs):
                node.refs = [target for target in node.refs if target not in gone]
                owners.add(node.id)
        return owners

    def splice_out(self, node_id: str) -> set[str]:
        """Removes a node whose children take its place; returns the owners of refs that pointed at it."""
        node = self.nodes[node_id]
        siblings = self.children[node.parent]
        at = siblings.index(node_id)
        siblings[at + 1 : at + 1] = self.children[node_id]
        for child in self.children[node_id]:
            self.nodes[child].parent = node.parent
        self.children[node_id] = []
        return self.remove([node_id])
