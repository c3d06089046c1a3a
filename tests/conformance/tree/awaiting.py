"""Nodes that await their content: no reader sees one until its session exists."""

from __future__ import annotations

import grpc
import pytest

from ramet.session.v1 import session_pb2
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from ramet.tree.v1 import tree_pb2 as pb
from ramet.tree.v1.tree_pb2_grpc import SessionTreeStub
from tests.conformance.refusing import refused, unknown_node
from tests.conformance.session import making as storing
from tests.conformance.tree.making import (
    CASCADE,
    REPARENT,
    add_ref,
    ancestors,
    children,
    create,
    delete,
    descendants,
    entries,
    get,
    grow,
    move,
    nodes,
    outline,
    roots,
    siblings,
)


class TestHalfMade:
    """letta: a crash between the steps of a fork leaves nothing half-made to see."""

    @pytest.fixture
    def half_made(self, tree: SessionTreeStub) -> str:
        """A node `h` below `a`, beside `b`, that awaits its content: what a crash in the midst of a fork leaves."""
        grow(tree, "a a/b x")
        create(tree, "h", "a", source="b", label="hidden", config=pb.Config(system_prompt="p"), awaits_content=True)
        return "h"

    def test_no_list_shows_it(self, tree: SessionTreeStub, half_made: str) -> None:
        create(tree, "r", awaits_content=True)
        assert nodes(tree) == ["a", "b", "x"]
        assert [node.id for node in tree.ListRoots(pb.ListRootsRequest()).nodes] == ["a", "x"]
        listed = tree.ListChildren(pb.ListChildrenRequest(node_id="a")).nodes
        assert [node.id for node in listed] == ["b"]
        assert siblings(tree, "b") == []
        assert descendants(tree, "a") == ["b"]
        assert [entry.node.id for entry in entries(tree)] == ["a", "x", "b"]
        assert [entry.node.id for entry in entries(tree, "a")] == ["a", "b"]
        assert nodes(tree, page_size=1) == ["a", "b", "x"]
        by_source = pb.NodeFilter(source_session_id="b")
        assert not tree.ListNodes(pb.ListNodesRequest(filter=by_source)).nodes

    def test_its_parent_neither_names_nor_counts_it(self, tree: SessionTreeStub, half_made: str) -> None:
        parent = get(tree, "a")
        assert (list(parent.children), parent.child_count) == (["b"], 1)
        assert entries(tree, "a")[0].node.child_count == 1

    def test_calls_on_it_are_not_found(self, tree: SessionTreeStub, half_made: str) -> None:
        for ask in (get, siblings, ancestors, descendants, entries, delete, move):
            with unknown_node():
                ask(tree, "h")
        with unknown_node():
            tree.ListChildren(pb.ListChildrenRequest(node_id="h"))
        with unknown_node():
            tree.GetConfig(pb.GetConfigRequest(node_id="h"))
        with unknown_node():
            tree.PutConfig(pb.PutConfigRequest(node_id="h", config=pb.Config()))
        with unknown_node():
            tree.UpdateNode(pb.UpdateNodeRequest(node_id="h", label="x"))
        with unknown_node():
            create(tree, "below", "h")
        with unknown_node():
            move(tree, "x", "h")
        with unknown_node():
            add_ref(tree, "h", "x")
        with unknown_node():
            add_ref(tree, "x", "h")

    def test_its_id_is_taken(self, tree: SessionTreeStub, half_made: str) -> None:
        with refused(grpc.StatusCode.ALREADY_EXISTS, "NODE_EXISTS"):
            create(tree, "h", "a")

    def test_its_session_makes_it_visible_at_once_and_everywhere(
        self, tree: SessionTreeStub, storage: SessionStorageStub, half_made: str
    ) -> None:
        storing.put(storage, "b")
        storing.append(storage, "b", storing.user("shared"))
        storing.fork(storage, "b", "h")
        assert outline(tree) == "a(b h) x"
        assert nodes(tree) == ["a", "b", "h", "x"]
        assert children(tree, "a") == ["b", "h"]
        node = get(tree, "h")
        assert (node.parent_id, node.label, node.source_session_id, node.index) == ("a", "hidden", "b", 1)
        assert tree.GetConfig(pb.GetConfigRequest(node_id="h")).system_prompt == "p"
        assert siblings(tree, "b") == ["h"]
        assert ancestors(tree, "h") == ["a"]
        by_source = pb.NodeFilter(source_session_id="b")
        assert [found.id for found in tree.ListNodes(pb.ListNodesRequest(filter=by_source)).nodes] == ["h"]

    def test_a_root_that_awaits_becomes_one_with_its_session(
        self, tree: SessionTreeStub, storage: SessionStorageStub
    ) -> None:
        create(tree, "r", awaits_content=True)
        assert roots(tree) == []
        storing.put(storage, "r", expected_version=0)
        assert roots(tree) == ["r"]

    def test_a_session_of_another_space_does_not_show_it(
        self, tree: SessionTreeStub, half_made: str, storage: SessionStorageStub
    ) -> None:
        storing.put(storage, "H")
        with unknown_node():
            get(tree, "h")

    def test_one_that_awaits_a_session_which_exists_is_refused(
        self, tree: SessionTreeStub, storage: SessionStorageStub
    ) -> None:
        storing.put(storage, "s")
        with refused(grpc.StatusCode.ALREADY_EXISTS, "SESSION_EXISTS"):
            create(tree, "s", awaits_content=True)
        assert nodes(tree) == []
        create(tree, "s")
        assert get(tree, "s").id == "s"

    def test_its_maker_takes_it_back_and_nothing_else(
        self, tree: SessionTreeStub, storage: SessionStorageStub, half_made: str
    ) -> None:
        take_back = pb.DeleteNodeRequest(node_id="b", only_awaiting=True)
        with unknown_node():
            tree.DeleteNode(take_back)
        create(tree, "late", "a", awaits_content=True)
        take_back.node_id = half_made
        assert tree.DeleteNode(take_back).deleted_node_ids == [half_made]
        create(tree, half_made, "a")
        storing.put(storage, "late")
        assert children(tree, "a") == ["b", "late", half_made]
        assert get(tree, half_made).index == 2
        take_back.node_id = "late"
        with unknown_node():
            tree.DeleteNode(take_back)

    def test_a_node_that_was_written_to_stays_when_its_session_goes(
        self, tree: SessionTreeStub, storage: SessionStorageStub
    ) -> None:
        create(tree, "s", awaits_content=True)
        storing.put(storage, "s")
        create(tree, "below", "s")
        storing.delete(storage, "s")
        assert outline(tree) == "s(below)"

    def test_a_session_that_is_deleted_alone_leaves_an_untouched_node_waiting(
        self, tree: SessionTreeStub, storage: SessionStorageStub
    ) -> None:
        create(tree, "s", awaits_content=True)
        storing.put(storage, "s")
        assert nodes(tree) == ["s"]
        storing.delete(storage, "s")
        assert nodes(tree) == []

    def test_an_archived_session_shows_its_node(self, tree: SessionTreeStub, storage: SessionStorageStub) -> None:
        create(tree, "s", awaits_content=True)
        storing.put(storage, "s")
        storing.archive(storage, "s")
        assert entries(tree)[0].status == pb.SESSION_STATUS_ARCHIVED

    def test_a_repeated_create_answers_as_the_first_while_it_waits(self, tree: SessionTreeStub) -> None:
        first = create(tree, "h", awaits_content=True, request_id="op-1")
        assert create(tree, "h", awaits_content=True, request_id="op-1") == first
        unnamed = create(tree, awaits_content=True, request_id="op-2")
        assert create(tree, awaits_content=True, request_id="op-2") == unnamed

    def test_siblings_made_and_moved_meanwhile_keep_one_order(
        self, tree: SessionTreeStub, storage: SessionStorageStub, half_made: str
    ) -> None:
        create(tree, "c", "a")
        storing.put(storage, "h")
        assert children(tree, "a") == ["b", "h", "c"]

    def test_a_parent_that_goes_takes_it_along(
        self, tree: SessionTreeStub, storage: SessionStorageStub, half_made: str
    ) -> None:
        delete(tree, "a", CASCADE)
        assert nodes(tree) == ["x"]
        storing.put(storage, "h")
        assert nodes(tree) == ["x"]
        with unknown_node():
            get(tree, "h")

    def test_a_parent_that_is_taken_out_hands_it_on(
        self, tree: SessionTreeStub, storage: SessionStorageStub, half_made: str
    ) -> None:
        delete(tree, "a", REPARENT)
        storing.put(storage, "h")
        assert outline(tree) == "b h x"

    def test_the_forks_own_session_is_whole_when_it_shows(
        self, tree: SessionTreeStub, storage: SessionStorageStub, half_made: str
    ) -> None:
        storing.put(storage, "b")
        storing.append(storage, "b", *storing.users(3))
        request = session_pb2.ForkSessionRequest(
            source_session_id="b", session_id="h", system_prompt="own", opening_prompt="hello"
        )
        request.all.SetInParent()
        storage.ForkSession(request)
        assert get(tree, "h").id == "h"
        found = storing.context(storage, "h")
        assert [record.content for record in found.records] == ["r1", "r2", "r3", "hello"]
        assert found.system_prompt.content == "own"
