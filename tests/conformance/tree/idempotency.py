"""Repeated requests: the same request_id changes nothing and answers as the first time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from google.protobuf.message import Message

from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from ramet.tree.v1 import tree_pb2 as pb
from ramet.tree.v1.tree_pb2_grpc import SessionTreeStub
from tests.conformance.refusing import bad_field, reused_request_id, unknown_node
from tests.conformance.session import making as storing
from tests.conformance.tree.making import CASCADE, add_ref, create, delete, entries, get, grow, nodes, outline

ONCE = "op-1"

# Each mutation of the service, on the forest "a(b c) x": a request, and the same request_id with another body.
MUTATIONS: list[tuple[str, Message, Message]] = [
    (
        "CreateSession",
        pb.CreateSessionRequest(session_id="new", parent_id="a", request_id=ONCE),
        pb.CreateSessionRequest(session_id="new", parent_id="x", request_id=ONCE),
    ),
    (
        "UpdateNode",
        pb.UpdateNodeRequest(node_id="b", label="new", request_id=ONCE),
        pb.UpdateNodeRequest(node_id="b", label="other", request_id=ONCE),
    ),
    (
        "MoveNode",
        pb.MoveNodeRequest(node_id="b", parent_id="x", request_id=ONCE),
        pb.MoveNodeRequest(node_id="b", request_id=ONCE),
    ),
    (
        "DeleteNode",
        pb.DeleteNodeRequest(node_id="a", policy=CASCADE, request_id=ONCE),
        pb.DeleteNodeRequest(node_id="x", request_id=ONCE),
    ),
    (
        "AddRef",
        pb.AddRefRequest(node_id="b", target_id="c", request_id=ONCE),
        pb.AddRefRequest(node_id="b", target_id="x", request_id=ONCE),
    ),
    (
        "RemoveRef",
        pb.RemoveRefRequest(node_id="c", target_id="x", request_id=ONCE),
        pb.RemoveRefRequest(node_id="c", target_id="b", request_id=ONCE),
    ),
    (
        "PutConfig",
        pb.PutConfigRequest(node_id="b", config=pb.Config(system_prompt="p"), request_id=ONCE),
        pb.PutConfigRequest(node_id="b", config=pb.Config(), request_id=ONCE),
    ),
]
EACH_MUTATION = pytest.mark.parametrize(
    ("method", "request_", "other"), MUTATIONS, ids=[method for method, _, _ in MUTATIONS]
)


def call(tree: SessionTreeStub, method: str, request: Message) -> Message:
    """Call a method by its name."""
    made: Callable[[Message], Message] = getattr(tree, method)
    return made(request)


def state(tree: SessionTreeStub) -> list[Message]:
    """All that the space shows."""
    found = entries(tree)
    return [*found, *(tree.GetConfig(pb.GetConfigRequest(node_id=entry.node.id)) for entry in found)]


class OverAForest:
    @pytest.fixture(autouse=True)
    def forest(self, tree: SessionTreeStub) -> None:
        """The forest that the mutations write to."""
        grow(tree, "a a/b a/c x")
        add_ref(tree, "c", "x")


class TestEveryTreeMutation(OverAForest):
    def test_every_method_that_takes_a_request_id_is_tried(self) -> None:
        [service] = pb.DESCRIPTOR.services_by_name.values()
        taking = [method.name for method in service.methods if "request_id" in method.input_type.fields_by_name]
        assert sorted(taking) == sorted(method for method, _, _ in MUTATIONS)

    @EACH_MUTATION
    def test_the_same_again_changes_nothing_and_answers_the_same(
        self, tree: SessionTreeStub, method: str, request_: Message, other: Message
    ) -> None:
        """anthropic-sdk-java#370: same key, same body -> first result."""
        first = call(tree, method, request_)
        after = state(tree)
        assert call(tree, method, request_) == first
        assert state(tree) == after

    @EACH_MUTATION
    def test_the_same_id_with_another_body_or_method_is_refused(
        self, tree: SessionTreeStub, method: str, request_: Message, other: Message
    ) -> None:
        """anthropic-sdk-java#370: same key, another body -> refused."""
        call(tree, method, request_)
        after = state(tree)
        with reused_request_id():
            call(tree, method, other)
        elsewhere, used = next((name, request) for name, request, _ in MUTATIONS if name != method)
        with reused_request_id():
            call(tree, elsewhere, used)
        assert state(tree) == after

    @EACH_MUTATION
    def test_many_at_the_same_moment_are_one(
        self, tree: SessionTreeStub, method: str, request_: Message, other: Message
    ) -> None:
        with ThreadPoolExecutor(6) as pool:
            replies = list(pool.map(lambda _: call(tree, method, request_), range(6)))
        assert all(reply == replies[0] for reply in replies)
        after = state(tree)
        assert call(tree, method, request_) == replies[0]
        assert state(tree) == after

    @EACH_MUTATION
    @pytest.mark.parametrize("request_id", [" x", "é", "a\x00b"])
    def test_a_bad_request_id_is_refused(
        self, tree: SessionTreeStub, method: str, request_: Message, other: Message, request_id: str
    ) -> None:
        bad = type(request_).FromString(request_.SerializeToString())
        bad.request_id = request_id  # type: ignore[attr-defined]  # every mutation has it
        before = state(tree)
        with bad_field("request_id"):
            call(tree, method, bad)
        assert state(tree) == before


class TestTreeRepeats(OverAForest):
    def test_a_repeated_create_without_an_id_names_the_same_node(self, tree: SessionTreeStub) -> None:
        first = create(tree, request_id=ONCE)
        assert create(tree, request_id=ONCE) == first
        assert len(nodes(tree)) == 5

    def test_a_repeated_delete_tells_its_first_result_though_the_id_is_used_anew(self, tree: SessionTreeStub) -> None:
        request = pb.DeleteNodeRequest(node_id="a", policy=CASCADE, request_id=ONCE)
        first = tree.DeleteNode(request)
        create(tree, "a")
        assert tree.DeleteNode(request) == first
        assert outline(tree) == "x a"

    def test_a_repeated_move_tells_its_removed_refs_and_moves_nothing_again(self, tree: SessionTreeStub) -> None:
        request = pb.MoveNodeRequest(node_id="x", parent_id="c", request_id=ONCE)
        first = tree.MoveNode(request)
        assert [(ref.node_id, ref.target_id) for ref in first.removed_refs] == [("c", "x")]
        assert tree.MoveNode(request) == first
        tree.MoveNode(pb.MoveNodeRequest(node_id="x"))
        again = tree.MoveNode(request)
        assert again.removed_refs == first.removed_refs
        assert outline(tree) == "a(b c) x"

    def test_a_repeat_whose_node_is_gone_is_not_found(self, tree: SessionTreeStub) -> None:
        request = pb.UpdateNodeRequest(node_id="b", label="new", request_id=ONCE)
        tree.UpdateNode(request)
        delete(tree, "b")
        with unknown_node():
            tree.UpdateNode(request)

    def test_a_repeat_with_an_expected_version_is_not_stale(self, tree: SessionTreeStub) -> None:
        version = get(tree, "b").version
        request = pb.UpdateNodeRequest(node_id="b", label="new", expected_version=version, request_id=ONCE)
        first = tree.UpdateNode(request)
        assert tree.UpdateNode(request) == first

    def test_a_repeat_tells_the_version_of_its_first_result(self, tree: SessionTreeStub) -> None:
        rename = pb.UpdateNodeRequest(node_id="b", label="first", request_id="op-1")
        node = tree.UpdateNode(rename)
        tree.UpdateNode(pb.UpdateNodeRequest(node_id="b", label="later"))
        assert tree.UpdateNode(rename).version == node.version
        write = pb.PutConfigRequest(node_id="b", config=pb.Config(system_prompt="first"), request_id="op-2")
        config = tree.PutConfig(write)
        tree.PutConfig(pb.PutConfigRequest(node_id="b", config=pb.Config(system_prompt="later")))
        assert tree.PutConfig(write).version == config.version
        assert get(tree, "b").label == "later"

    def test_a_refused_request_leaves_its_id_free(self, tree: SessionTreeStub) -> None:
        with unknown_node():
            create(tree, "new", "nobody", request_id=ONCE)
        assert create(tree, "new", "a", request_id=ONCE).parent_id == "a"

    def test_the_two_services_keep_their_own_request_ids(
        self, tree: SessionTreeStub, storage: SessionStorageStub
    ) -> None:
        create(tree, "s", request_id=ONCE)
        assert storing.put(storage, "s", request_id=ONCE).id == "s"
