"""A chain of five thousand nodes: every answer about it is complete.

laravel-adjacency-list#191: ancestors, subtree, delete of a deep chain -> complete, and never cut in silence.
"""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest

from ramet.tree.v1 import tree_pb2 as pb
from ramet.tree.v1.tree_pb2_grpc import SessionTreeStub
from tests.cases.bulk import engine_of, fill_chain
from tests.conformance.refusing import refused, unknown_node
from tests.conformance.tree import making as growing
from tests.harness.server import running_server

DEPTH = 5000
NAMES = [f"n{number}" for number in range(DEPTH)]


@pytest.fixture
def tree(database_url: str) -> Iterator[SessionTreeStub]:
    """A server, on each backend, whose default space holds one chain from n0 to n4999."""
    engine = engine_of(database_url)
    with running_server(database_url) as address, grpc.insecure_channel(address) as channel:
        with engine.begin() as connection:
            fill_chain(connection, "default", DEPTH)
        yield SessionTreeStub(channel)
    engine.dispose()


def test_ancestors_subtree_move_and_delete_are_complete(tree: SessionTreeStub) -> None:
    deepest = NAMES[-1]
    upwards = NAMES[-2::-1]
    assert growing.ancestors(tree, deepest, page_size=10_000) == growing.ancestors(tree, deepest) == upwards
    assert growing.descendants(tree, "n0", page_size=10_000) == growing.descendants(tree, "n0") == NAMES[1:]
    assert [entry.node.id for entry in growing.entries(tree, page_size=10_000)] == NAMES
    assert [entry.node.id for entry in growing.entries(tree, "n10")] == NAMES[10:]
    with refused(grpc.StatusCode.FAILED_PRECONDITION, "MOVE_MAKES_CYCLE"):
        growing.move(tree, "n0", deepest)
    with refused(grpc.StatusCode.FAILED_PRECONDITION, "ILLEGAL_REF"):
        growing.add_ref(tree, deepest, "n0")
    below = growing.create(tree, "below", deepest)
    assert below.depth == DEPTH

    # The lower half hangs itself upon a new root, and every depth below it follows.
    growing.create(tree, "other")
    growing.add_ref(tree, "other", "n4000")
    reply = growing.move(tree, "n2500", "other")
    assert [(ref.node_id, ref.target_id) for ref in reply.removed_refs] == [("other", "n4000")]
    assert growing.get(tree, "below").depth == DEPTH - 2500 + 1
    assert growing.ancestors(tree, deepest) == [*NAMES[-2:2499:-1], "other"]
    assert growing.descendants(tree, "n0") == NAMES[1:2500]

    deleted = growing.delete(tree, "n2500", growing.CASCADE)
    assert deleted.deleted_count == DEPTH - 2500 + 1
    deleted = growing.delete(tree, "n0", growing.REPARENT)
    assert deleted.deleted_count == 1
    assert growing.get(tree, "n2499").depth == 2498
    assert growing.delete(tree, "n1", pb.DELETE_POLICY_CASCADE).deleted_count == 2499
    assert growing.nodes(tree) == ["other"]
    with unknown_node():
        growing.get(tree, deepest)
