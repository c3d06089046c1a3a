"""The forest as GetTree lists it, with what the tree may know of sessions."""

from __future__ import annotations

from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from ramet.tree.v1 import tree_pb2 as pb
from ramet.tree.v1.tree_pb2_grpc import SessionTreeStub
from tests.conformance.session import making as storing
from tests.conformance.tree.making import add_ref, create, entries, grow, outline


class TestForest:
    def test_entries_tell_status_and_turns_where_the_session_exists(
        self, tree: SessionTreeStub, storage: SessionStorageStub
    ) -> None:
        grow(tree, "a b c d")
        for session_id in ("a", "b", "d"):
            storing.put(storage, session_id)
        storing.append(storage, "a", storing.user(), turn_delta=3)
        storing.archive(storage, "b")
        storing.delete(storage, "d")
        told = {
            entry.node.id: (entry.status, entry.turn_count if entry.HasField("turn_count") else None)
            for entry in entries(tree)
        }
        assert told == {
            "a": (pb.SESSION_STATUS_ACTIVE, 3),
            "b": (pb.SESSION_STATUS_ARCHIVED, 0),
            "c": (pb.SESSION_STATUS_UNSPECIFIED, None),
            "d": (pb.SESSION_STATUS_UNSPECIFIED, None),
        }

    def test_entries_hold_depth_and_refs_and_no_ids_of_children(self, tree: SessionTreeStub) -> None:
        grow(tree, "a a/b b/c x")
        add_ref(tree, "c", "x")
        found = {entry.node.id: entry.node for entry in entries(tree)}
        assert {name: node.depth for name, node in found.items()} == {"a": 0, "x": 0, "b": 1, "c": 2}
        assert list(found["c"].refs) == ["x"]
        assert all(list(node.children) == [] for node in found.values())
        assert found["a"].child_count == 1

    def test_a_subtree_keeps_its_depths_in_the_forest(self, tree: SessionTreeStub) -> None:
        grow(tree, "a a/b b/c b/d c/e a/f")
        found = entries(tree, "b")
        assert [(entry.node.id, entry.node.depth) for entry in found] == [("b", 1), ("c", 2), ("d", 2), ("e", 3)]
        assert outline(tree, "b") == "b(c(e) d)"

    def test_sessions_of_another_space_are_not_told(self, tree: SessionTreeStub, storage: SessionStorageStub) -> None:
        create(tree, "a")
        assert entries(tree)[0].status == pb.SESSION_STATUS_UNSPECIFIED
        storing.put(storage, "a")
        assert entries(tree)[0].status == pb.SESSION_STATUS_ACTIVE

    def test_labels_of_any_script_come_back(self, tree: SessionTreeStub) -> None:
        create(tree, "a", label="计划 👩‍👩‍👧‍👦 e\u0301")
        assert entries(tree)[0].node.label == "计划 👩‍👩‍👧‍👦 e\u0301"
