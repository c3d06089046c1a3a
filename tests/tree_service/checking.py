"""Whether a forest is whole, by its rows."""

from collections import defaultdict
from typing import Any

from sqlalchemy import select

from ramet_server.database.tables.shared import space
from ramet_server.database.tables.tree import node_ref, topology_node
from tests.tree_service.forest import Forest


def check_whole(forest: Forest) -> None:
    """Fails unless ranks, depths, counts and refs of the space are what they must be, and there is no cycle."""
    nodes, refs, root_count = _rows(forest)
    children: dict[str | None, list[Any]] = defaultdict(list)
    for node in nodes.values():
        children[node.parent_id].append(node)
    for parent_id, family in children.items():
        assert sorted(node.index for node in family) == list(range(len(family))), f"indexes below {parent_id}"
        if parent_id is not None:
            assert parent_id in nodes, f"{parent_id} has children but is no node"
    assert root_count == len(children[None])
    for node in nodes.values():
        assert node.child_count == len(children[node.node_id]), f"child_count of {node.node_id}"
        assert node.depth == (0 if node.parent_id is None else nodes[node.parent_id].depth + 1), node.node_id
        assert not (node.awaits_content and node.child_count), f"{node.node_id} awaits content, with children"
    assert len(_reached(children)) == len(nodes), "some nodes hang on no root"
    for ref in refs:
        assert ref.node_id in nodes, f"a ref from {ref.node_id}, which is gone"
        assert ref.target_id in nodes, f"a ref to {ref.target_id}, which is gone"
        assert not nodes[ref.node_id].awaits_content
        assert not nodes[ref.target_id].awaits_content
        assert ref.node_id not in _line(nodes, ref.target_id), f"a ref to a descendant: {ref}"
        assert ref.target_id not in _line(nodes, ref.node_id), f"a ref to an ancestor: {ref}"


def _rows(forest: Forest) -> tuple[dict[str, Any], list[Any], int]:
    here = forest.call.space
    t = topology_node.c
    columns = (t.node_id, t.parent_id, t.depth, t.index, t.child_count, t.awaits_content)

    def read(connection: Any) -> tuple[dict[str, Any], list[Any], int]:
        rows = connection.execute(select(*columns).where(t.space_id == here)).all()
        refs = connection.execute(select(node_ref).where(node_ref.c.space_id == here)).all()
        count = connection.execute(select(space.c.root_count).where(space.c.space_id == here)).scalar()
        return {row.node_id: row for row in rows}, refs, count or 0

    return forest.database.read(forest.call, read, snapshot=True)


def _reached(children: dict[str | None, list[Any]]) -> set[str]:
    reached: set[str] = set()
    ahead: list[str | None] = [None]
    while ahead:
        for node in children.get(ahead.pop(), []):
            reached.add(node.node_id)
            ahead.append(node.node_id)
    return reached


def _line(nodes: dict[str, Any], node_id: str) -> list[str]:
    line = [node_id]
    while (parent_id := nodes[line[-1]].parent_id) is not None:
        line.append(parent_id)
    return line
