"""Which nodes a reader may see, and what of each."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ramet_server.domain.errors import InvalidField, NodeNotFound, StaleVersion
from ramet_server.domain.idempotency import Outcome
from ramet_server.domain.text import utf8_size
from tree_service.rules.ports import UnitOfWork
from tree_service.rules.values import SHOWN_CHILDREN, ChangeKind, Node, ShownNode

_CHUNK = 1000
_NODE_BYTES = 64


def lock_space(unit: UnitOfWork, field: str = "node_id") -> int:
    """Locks the space and returns its number of roots; raises NodeNotFound where it never had a node."""
    roots = unit.space.lock()
    if roots is None:
        raise _unknown(field)
    return roots


def visible(unit: UnitOfWork, node_id: str, field: str = "node_id") -> Node:
    """Returns the node; raises NodeNotFound where there is none that a reader may see."""
    node = unit.nodes.find(node_id)
    if node is None:
        raise _unknown(field)
    return node


def _unknown(field: str) -> NodeNotFound:
    return NodeNotFound(f"No node has this {field}.", field=field)


def hidden(unit: UnitOfWork, node_id: str) -> Node:
    """Returns a node that awaits its content; raises NodeNotFound for any other, a visible one among them."""
    node = unit.nodes.find_any(node_id)
    if node is None or unit.nodes.find(node_id) is not None:
        raise NodeNotFound("No node that awaits its content has this node_id.", field="node_id")
    return node


def settled(unit: UnitOfWork, node: Node) -> Node:
    """Returns a visible node that a change leans on, made visible for good."""
    # Else the node would hide again if its session were deleted, with children or refs hanging on it.
    if not node.awaits_content:
        return node
    settle(unit, [node.node_id])
    return replace(node, awaits_content=False)


def settle(unit: UnitOfWork, node_ids: Sequence[str]) -> None:
    """Makes nodes whose content has come visible for good, which is when those who watch are told of them."""
    unit.nodes.settle(node_ids)
    unit.changes.tell(ChangeKind.CREATED, node_ids)


def settle_arrived(unit: UnitOfWork, node_ids: Sequence[str]) -> bool:
    """Settles those of these nodes that await their content although it has come; False where one hides again."""
    unit.space.lock()
    waiting = unit.nodes.waiting(node_ids)
    settle(unit, [node_id for node_id in node_ids if waiting.get(node_id)])
    return all(waiting.values())


def check_expected(version: int | None) -> None:
    """Refuses an expected version that nothing can ever have."""
    if version is not None and version < 0:
        raise InvalidField("expected_version must not be negative.", field="expected_version")


def check_version(node: Node, expected: int | None) -> None:
    """Raises StaleVersion where a version is expected and it is another one."""
    if expected is not None and expected != node.version:
        raise StaleVersion(
            "The node changed since this version.",
            field="expected_version",
            details={"current": str(node.version)},
        )


def show(unit: UnitOfWork, node: Node) -> ShownNode:
    """Returns one node with its refs and children."""
    refs = unit.refs.of([node.node_id]).get(node.node_id, ())
    if not node.child_count:
        return ShownNode(node, refs)
    children = tuple(unit.nodes.child_ids(node.node_id, SHOWN_CHILDREN))
    hidden = unit.nodes.hidden_children([node.node_id]).get(node.node_id, 0)
    return ShownNode(replace(node, child_count=node.child_count - hidden), refs, children)


def show_stored(unit: UnitOfWork, node_id: str) -> ShownNode:
    """Returns a node that this unit has just written."""
    node = unit.nodes.find_any(node_id)
    if node is None:
        raise NodeNotFound("The node is gone.", field="node_id")
    return show(unit, node)


def show_again(unit: UnitOfWork, outcome: Outcome) -> ShownNode:
    """Returns the node that a repeated request had written, hidden or not, with the version of that time."""
    shown = show_stored(unit, str(outcome["node_id"]))
    version = outcome["version"]
    return replace(shown, node=replace(shown.node, version=version)) if isinstance(version, int) else shown


def remember(shown: ShownNode) -> dict[str, int | str]:
    """Returns what ``show_again`` needs."""
    return {"node_id": shown.node.node_id, "version": shown.node.version}


def show_page(unit: UnitOfWork, nodes: Sequence[Node], max_bytes: int) -> list[ShownNode]:
    """Returns nodes as a list shows them: the first ones that fit into so many bytes, and one at least."""
    page: list[ShownNode] = []
    room = max_bytes
    for start in range(0, len(nodes), _CHUNK):
        for shown in _show_chunk(unit, nodes[start : start + _CHUNK]):
            room -= _size(shown)
            if room < 0 and page:
                return page
            page.append(shown)
    return page


def _show_chunk(unit: UnitOfWork, nodes: Sequence[Node]) -> Iterable[ShownNode]:
    refs = unit.refs.of([node.node_id for node in nodes])
    parents = [node.node_id for node in nodes if node.child_count]
    hidden = unit.nodes.hidden_children(parents) if parents else {}
    for node in nodes:
        unseen = hidden.get(node.node_id, 0)
        shown = replace(node, child_count=node.child_count - unseen) if unseen else node
        yield ShownNode(shown, refs.get(node.node_id, ()))


def _size(shown: ShownNode) -> int:
    node = shown.node
    ids = len(node.node_id) + len(node.parent_id or "") + len(node.source_session_id or "")
    return _NODE_BYTES + ids + utf8_size(node.label) + sum(len(ref) + 3 for ref in shown.refs)
