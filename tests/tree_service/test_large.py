"""A forest of 100,000 nodes: complete, in statements that grow with what is read, in bounded memory."""

import tracemalloc
from collections.abc import Iterator

import pytest
from sqlalchemy import event

from ramet.tree.v1 import tree_pb2 as pb
from tests.tree_service.bulk import multiply, name, plant
from tests.tree_service.forest import Forest

TREE = 1000
COPIES = 99
SIZE = TREE * (COPIES + 1)
MOST_BYTES = 20 * 1024 * 1024


def _tree() -> Iterator[tuple[str, str | None]]:
    """Yields a root, and 3 children of each node until there are enough; ids say nothing of the order."""
    for number in range(TREE):
        yield _id(number), _id((number - 1) // 3) if number else None


def _id(number: int) -> str:
    return name(number * 617 % TREE)


@pytest.fixture
def wood(forest: Forest) -> Forest:
    """A tree of a thousand nodes, to be multiplied."""
    plant(forest, _tree(), label="a label as people write them")
    return forest


@pytest.mark.timeout(600)
def test_a_large_forest_is_read_complete_and_in_bounded_memory(wood: Forest) -> None:
    multiply(wood, COPIES)
    seen: set[str] = set()
    depth = 0
    tokens: list[str] = []
    for page in wood.pages("GetTree", pb.GetTreeRequest(page_size=1000)):
        tokens.append(page.next_page_token)
        for entry in page.entries:
            assert entry.node.depth >= depth
            depth = entry.node.depth
            # Parents before their children.
            assert not depth or entry.node.parent_id in seen
            seen.add(entry.node.id)
    assert len(seen) == SIZE
    assert len(tokens) == SIZE // 1000
    early, late = tokens[0], tokens[-2]
    assert _statements(wood, early) <= 8
    assert _statements(wood, late) <= 8
    for token in (early, late):
        assert _peak(wood, pb.GetTreeRequest(page_token=token)) < MOST_BYTES


@pytest.mark.timeout(600)
def test_a_large_subtree_is_read_and_moved_whole(wood: Forest) -> None:
    multiply(wood, 21)
    root = _id(0)
    wood.create("top")
    for copy in range(1, 21):
        wood.move(f"{copy:03}-{root}", "top")
    below = wood.descendants("top", 10_000)
    assert len(below) == len(set(below)) == 20 * TREE
    assert [entry.node.id for entry in wood.entries("top", 10_000)] == ["top", *below]
    assert _peak(wood, pb.GetTreeRequest(node_id="top")) < MOST_BYTES
    deleted = wood.delete("top", pb.DELETE_POLICY_CASCADE)
    assert deleted.deleted_count == 20 * TREE + 1
    assert list(deleted.deleted_node_ids) == ["top", *below[:999]]


def _statements(forest: Forest, token: str) -> int:
    """Returns how many statements one page takes."""
    seen: list[str] = []

    def see(*arguments: object) -> None:
        seen.append(str(arguments[2]))

    event.listen(forest.database.engine, "before_cursor_execute", see)
    try:
        forest.service.GetTree(pb.GetTreeRequest(page_token=token), forest.call)
    finally:
        event.remove(forest.database.engine, "before_cursor_execute", see)
    return len(seen)


def _peak(forest: Forest, request: pb.GetTreeRequest) -> int:
    """Returns the most memory that one page takes, in bytes."""
    tracemalloc.start()
    try:
        forest.service.GetTree(request, forest.call)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
