"""Deletions: by a declared policy, siblings close ranks, refs go."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import grpc
import pytest

from ramet.session.v1 import session_pb2
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from ramet.tree.v1 import tree_pb2 as pb
from ramet.tree.v1.tree_pb2_grpc import SessionTreeStub
from tests.conformance.refusing import bad_field, reason_of, refused, stale_version, unknown_node
from tests.conformance.session import making as storing
from tests.conformance.tree.making import (
    CASCADE,
    REFUSE,
    REPARENT,
    add_ref,
    create,
    delete,
    get,
    grow,
    nodes,
    outline,
)


class TestDeleting:
    @pytest.mark.parametrize("policy", [pb.DELETE_POLICY_UNSPECIFIED, REFUSE, CASCADE, REPARENT])
    def test_a_leaf_goes_under_every_policy(self, tree: SessionTreeStub, policy: pb.DeletePolicy.ValueType) -> None:
        grow(tree, "a a/x a/y a/z")
        reply = delete(tree, "y", policy)
        assert (reply.deleted_count, list(reply.deleted_node_ids)) == (1, ["y"])
        assert outline(tree) == "a(x z)"
        with unknown_node():
            get(tree, "y")
        with unknown_node():
            delete(tree, "y", policy)

    def test_roots_close_ranks(self, tree: SessionTreeStub) -> None:
        grow(tree, "a b c")
        delete(tree, "a")
        assert outline(tree) == "b c"
        assert create(tree, "d").index == 2

    @pytest.mark.parametrize("policy", [pb.DELETE_POLICY_UNSPECIFIED, REFUSE])
    def test_a_node_with_children_is_kept_unless_told_otherwise(
        self, tree: SessionTreeStub, policy: pb.DeletePolicy.ValueType
    ) -> None:
        grow(tree, "a a/b")
        with refused(grpc.StatusCode.FAILED_PRECONDITION, "NODE_HAS_CHILDREN"):
            delete(tree, "a", policy)
        assert outline(tree) == "a(b)"

    def test_cascade_takes_everything_below(self, tree: SessionTreeStub) -> None:
        grow(tree, "a a/x x/y y/z x/w a/k b")
        reply = delete(tree, "x", CASCADE)
        assert reply.deleted_count == 4
        assert sorted(reply.deleted_node_ids) == ["w", "x", "y", "z"]
        assert outline(tree) == "a(k) b"
        assert nodes(tree) == ["a", "b", "k"]

    def test_reparent_puts_the_children_in_the_place_of_their_parent(self, tree: SessionTreeStub) -> None:
        grow(tree, "a a/x a/y a/z y/k y/l k/m")
        reply = delete(tree, "y", REPARENT)
        assert (reply.deleted_count, list(reply.deleted_node_ids)) == (1, ["y"])
        assert outline(tree) == "a(x k(m) l z)"

    def test_reparent_of_a_root_makes_roots_in_its_place(self, tree: SessionTreeStub) -> None:
        grow(tree, "a b c b/k b/l k/m")
        delete(tree, "b", REPARENT)
        assert outline(tree) == "a k(m) l c"

    def test_refs_from_and_to_deleted_nodes_go(self, tree: SessionTreeStub) -> None:
        grow(tree, "a a/x b c")
        add_ref(tree, "b", "x")
        add_ref(tree, "b", "c")
        add_ref(tree, "x", "c")
        delete(tree, "a", CASCADE)
        assert list(get(tree, "b").refs) == ["c"]
        create(tree, "x")
        assert list(get(tree, "x").refs) == []
        assert list(get(tree, "b").refs) == ["c"]

    def test_a_node_of_the_same_id_begins_anew(self, tree: SessionTreeStub) -> None:
        create(tree, "a", label="old", source="s", config=pb.Config(system_prompt="old"))
        delete(tree, "a")
        made = create(tree, "a")
        assert (made.label, made.source_session_id) == ("", "")
        assert tree.GetConfig(pb.GetConfigRequest(node_id="a")) == pb.Config()

    def test_the_source_is_kept_on_nodes_forked_from_a_deleted_one(self, tree: SessionTreeStub) -> None:
        create(tree, "a")
        create(tree, "b", source="a")
        delete(tree, "a")
        assert get(tree, "b").source_session_id == "a"

    def test_a_stale_version_is_refused(self, tree: SessionTreeStub) -> None:
        made = create(tree, "a")
        tree.UpdateNode(pb.UpdateNodeRequest(node_id="a", label="newer"))
        with stale_version():
            tree.DeleteNode(pb.DeleteNodeRequest(node_id="a", expected_version=made.version))
        assert outline(tree) == "a"

    def test_an_unknown_policy_is_refused(self, tree: SessionTreeStub) -> None:
        create(tree, "a")
        with bad_field("policy"):
            delete(tree, "a", 77)  # type: ignore[arg-type]  # of a later contract
        assert outline(tree) == "a"

    def test_a_delete_beside_new_children_leaves_no_orphan(self, tree: SessionTreeStub) -> None:
        for number in range(6):
            grow(tree, f"a{number}")
            creates = [partial(create, tree, f"c{number}-{place}", f"a{number}") for place in range(2)]
            with ThreadPoolExecutor(3) as pool:
                making = [pool.submit(reason_of, made) for made in creates]
                delete(tree, f"a{number}", CASCADE)
                assert {done.result() for done in making} <= {None, "NODE_NOT_FOUND"}
        assert nodes(tree) == []


class TestSessionsOfDeletedNodes:
    def test_sessions_stay_unless_told_otherwise(self, tree: SessionTreeStub, storage: SessionStorageStub) -> None:
        create(tree, "a")
        storing.put(storage, "a")
        delete(tree, "a")
        assert storing.get(storage, "a").id == "a"

    def test_the_caller_may_delete_them_itself(self, tree: SessionTreeStub, storage: SessionStorageStub) -> None:
        create(tree, "a")
        storing.put(storage, "a")
        reply = delete(tree, "a", sessions=True)
        for node_id in reply.deleted_node_ids:
            # The sweep may have come first.
            assert reason_of(partial(storing.delete, storage, node_id)) in {None, "SESSION_NOT_FOUND"}
        with refused(grpc.StatusCode.NOT_FOUND, "SESSION_NOT_FOUND"):
            storage.GetSession(session_pb2.GetSessionRequest(session_id="a"))

    def test_a_session_made_anew_after_the_delete_is_not_taken(
        self, tree: SessionTreeStub, storage: SessionStorageStub
    ) -> None:
        create(tree, "a")
        delete(tree, "a", sessions=True)
        storing.put(storage, "a", label="anew")
        assert storing.get(storage, "a").label == "anew"
