"""Short words for what the tests of SessionTree do again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from ramet.tree.v1 import tree_pb2 as pb
from ramet.tree.v1.tree_pb2_grpc import SessionTreeStub

REFUSE, CASCADE, REPARENT = pb.DELETE_POLICY_REFUSE, pb.DELETE_POLICY_CASCADE, pb.DELETE_POLICY_REPARENT


def create(
    tree: SessionTreeStub,
    node_id: str = "",
    parent: str | None = None,
    *,
    label: str = "",
    source: str = "",
    config: pb.Config | None = None,
    awaits_content: bool = False,
    request_id: str = "",
) -> pb.Node:
    """Create a node."""
    return tree.CreateSession(
        pb.CreateSessionRequest(
            parent_id=parent,
            session_id=node_id,
            label=label,
            source_session_id=source,
            config=config,
            awaits_content=awaits_content,
            request_id=request_id,
        )
    )


def grow(tree: SessionTreeStub, shape: str) -> None:
    """Create nodes in the order of the words: `a` is a root, `a/b` a child b of a."""
    for word in shape.split():
        parent, slash, node_id = word.rpartition("/")
        create(tree, node_id, parent if slash else None)


def get(tree: SessionTreeStub, node_id: str) -> pb.Node:
    """Read a node."""
    return tree.GetNode(pb.GetNodeRequest(node_id=node_id))


def move(
    tree: SessionTreeStub, node_id: str, parent: str | None = None, index: int | None = None
) -> pb.MoveNodeResponse:
    """Move a node; without a parent it becomes a root."""
    return tree.MoveNode(pb.MoveNodeRequest(node_id=node_id, parent_id=parent, index=index))


def delete(
    tree: SessionTreeStub, node_id: str, policy: pb.DeletePolicy.ValueType = REFUSE, *, sessions: bool = False
) -> pb.DeleteNodeResponse:
    """Delete a node."""
    return tree.DeleteNode(pb.DeleteNodeRequest(node_id=node_id, policy=policy, delete_sessions=sessions))


def add_ref(tree: SessionTreeStub, node_id: str, target: str) -> pb.Node:
    """Add a cross reference."""
    return tree.AddRef(pb.AddRefRequest(node_id=node_id, target_id=target))


class _Nodes(Protocol):
    @property
    def next_page_token(self) -> str: ...


Page = TypeVar("Page", bound=_Nodes)


def paged(ask: Callable[[str], Page]) -> Iterator[Page]:
    """Every page of a list, by a function that asks for the page of a token."""
    token = ""
    while True:
        page = ask(token)
        yield page
        token = page.next_page_token
        if not token:
            return


def nodes(tree: SessionTreeStub, page_size: int = 0) -> list[str]:
    """The ids of every node of the space."""
    pages = paged(lambda token: tree.ListNodes(pb.ListNodesRequest(page_size=page_size, page_token=token)))
    return [node.id for page in pages for node in page.nodes]


def roots(tree: SessionTreeStub, page_size: int = 0) -> list[str]:
    """The ids of the roots, whose indexes must run from 0 without a gap."""
    pages = paged(lambda token: tree.ListRoots(pb.ListRootsRequest(page_size=page_size, page_token=token)))
    found = [node for page in pages for node in page.nodes]
    assert [node.index for node in found] == list(range(len(found)))
    assert all(node.depth == 0 and not node.HasField("parent_id") for node in found)
    return [node.id for node in found]


def children(tree: SessionTreeStub, node_id: str, page_size: int = 0) -> list[str]:
    """The ids of the children of a node, whose indexes must run from 0 without a gap."""
    request = pb.ListChildrenRequest(node_id=node_id, page_size=page_size)

    def ask(token: str) -> pb.ListChildrenResponse:
        request.page_token = token
        return tree.ListChildren(request)

    found = [node for page in paged(ask) for node in page.nodes]
    parent = get(tree, node_id)
    assert [node.index for node in found] == list(range(len(found)))
    assert all(node.parent_id == node_id and node.depth == parent.depth + 1 for node in found)
    assert (parent.child_count, list(parent.children)) == (len(found), [node.id for node in found][:1000])
    return [node.id for node in found]


def ancestors(tree: SessionTreeStub, node_id: str, page_size: int = 0) -> list[str]:
    """The ids of the ancestors of a node, parent first."""
    request = pb.GetAncestorsRequest(node_id=node_id, page_size=page_size)

    def ask(token: str) -> pb.GetAncestorsResponse:
        request.page_token = token
        return tree.GetAncestors(request)

    return [node.id for page in paged(ask) for node in page.nodes]


def siblings(tree: SessionTreeStub, node_id: str, page_size: int = 0) -> list[str]:
    """The ids of the siblings of a node."""
    request = pb.GetSiblingsRequest(node_id=node_id, page_size=page_size)

    def ask(token: str) -> pb.GetSiblingsResponse:
        request.page_token = token
        return tree.GetSiblings(request)

    return [node.id for page in paged(ask) for node in page.nodes]


def descendants(tree: SessionTreeStub, node_id: str, page_size: int = 0) -> list[str]:
    """The ids of everything below a node."""
    request = pb.ListDescendantsRequest(node_id=node_id, page_size=page_size)

    def ask(token: str) -> pb.ListDescendantsResponse:
        request.page_token = token
        return tree.ListDescendants(request)

    return [node.id for page in paged(ask) for node in page.nodes]


def entries(tree: SessionTreeStub, node_id: str | None = None, page_size: int = 0) -> list[pb.TreeEntry]:
    """The forest, or one node and everything below it."""
    request = pb.GetTreeRequest(node_id=node_id, page_size=page_size)

    def ask(token: str) -> pb.GetTreeResponse:
        request.page_token = token
        return tree.GetTree(request)

    return [entry for page in paged(ask) for entry in page.entries]


def outline(tree: SessionTreeStub, node_id: str | None = None) -> str:
    """The forest as one line, such as `a(b(d) c) e`: every place is told, and every promise of a place is checked."""
    found = [entry.node for entry in entries(tree, node_id)]
    seen: dict[str, pb.Node] = {}
    below: dict[str | None, list[pb.Node]] = {}
    base = found[0].depth if found and node_id is not None else 0
    for place, node in enumerate(found):
        is_top = node.depth == base
        assert is_top or node.parent_id in seen, f"{node.id} comes before its parent"
        assert is_top or node.depth == seen[node.parent_id].depth + 1
        assert node_id is not None or is_top != node.HasField("parent_id")
        key = None if is_top else node.parent_id
        group = below.setdefault(key, [])
        if node_id is None or place:
            assert node.index == len(group), f"{node.id} has index {node.index} after {len(group)} siblings"
        group.append(node)
        seen[node.id] = node
    depths = [node.depth for node in found]
    assert depths == sorted(depths)
    for node in found:
        assert node.child_count == len(below.get(node.id, [])), node

    def told(node: pb.Node) -> str:
        inner = " ".join(map(told, below.get(node.id, [])))
        return f"{node.id}({inner})" if inner else node.id

    return " ".join(map(told, below.get(None, [])))
