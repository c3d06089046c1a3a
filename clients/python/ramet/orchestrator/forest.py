"""The forest as nested values, built from its pages."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from ramet.client import Node, SessionStatus, SessionTreeClient, TreeEntry

__all__ = ["Forest", "TreeNode", "build_forest", "read_forest"]


@dataclass(frozen=True, eq=False)
class TreeNode:
    """A node with everything below it."""

    node: Node
    """The node itself; its own ``children`` are not filled."""
    status: SessionStatus | None
    """None where there is no session of this id."""
    turn_count: int | None
    """None where there is no session of this id."""
    children: "tuple[TreeNode, ...]" = field(repr=False)
    """By index."""

    @property
    def id(self) -> str:
        """The id of the node and its session."""
        return self.node.id

    def walk(self) -> "Iterator[TreeNode]":
        """Yields this node and everything below it, parents first, at any depth."""
        waiting = [self]
        while waiting:
            current = waiting.pop()
            yield current
            waiting.extend(reversed(current.children))


@dataclass(frozen=True, eq=False)
class Forest:
    """The forest of a space, or one node and everything below it."""

    roots: tuple[TreeNode, ...] = field(repr=False)
    """By index; only the node where one was asked for."""
    left_out: tuple[str, ...] = ()
    """Nodes that moved or came while the pages were read, to a place that this reading cannot show. Usually none."""
    position: int = 0
    """Where to go on from: :meth:`SessionTreeClient.watch_tree` after it tells all that this reading may miss."""

    def walk(self) -> Iterator[TreeNode]:
        """Yields every node, parents first, at any depth."""
        for root in self.roots:
            yield from root.walk()

    def find(self, node_id: str) -> TreeNode | None:
        """Finds a node by id; None where it is not in this forest."""
        return next((node for node in self.walk() if node.id == node_id), None)


async def read_forest(tree: SessionTreeClient, top_id: str | None) -> Forest:
    """Reads all pages of the forest, or of one node and everything below it, and nests them."""
    page = await tree.get_tree(top_id, page_size=1000)
    entries, position = list(page.entries), page.position
    while page.next_page_token is not None:
        page = await tree.get_tree(top_id, page_size=1000, page_token=page.next_page_token)
        entries += page.entries
    return replace(build_forest(entries, top_id), position=position)


def build_forest(entries: Iterable[TreeEntry], top_id: str | None = None) -> Forest:
    """Nests entries without recursion, so that no depth is too deep."""
    # Pages are read one after another: a node that moves meanwhile may be listed twice, or below one that is not.
    listed = {entry.node.id: entry for entry in reversed(list(entries))}
    below: defaultdict[str | None, list[TreeEntry]] = defaultdict(list)
    tops: list[TreeEntry] = []
    for entry in listed.values():
        top = entry.node.id == top_id if top_id is not None else entry.node.parent_id is None
        (tops if top else below[entry.node.parent_id]).append(entry)

    parents_first: list[TreeEntry] = []
    waiting = list(tops)
    while waiting:
        entry = waiting.pop()
        parents_first.append(entry)
        waiting.extend(below[entry.node.id])

    built: dict[str, TreeNode] = {}
    for entry in reversed(parents_first):
        children = sorted((built[child.node.id] for child in below[entry.node.id]), key=_index)
        built[entry.node.id] = TreeNode(entry.node, entry.status, entry.turn_count, tuple(children))
    roots = sorted((built[entry.node.id] for entry in tops), key=_index)
    return Forest(tuple(roots), tuple(sorted(listed.keys() - built.keys())))


def _index(node: TreeNode) -> int:
    return node.node.index
