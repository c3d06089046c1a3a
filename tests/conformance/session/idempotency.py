"""Repeated requests: the same request_id changes nothing and answers as the first time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message

from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from tests.conformance.refusing import (
    bad_field,
    reason_of,
    refused,
    reused_request_id,
    stale_head,
    too_large,
    unknown_session,
)
from tests.conformance.session.making import (
    append,
    delete,
    fork,
    get,
    get_insight,
    history,
    put,
    put_insight,
    put_memory,
    texts,
    user,
    users,
)

ONCE = "op-1"


def _fork_request(**fields: Any) -> pb.ForkSessionRequest:
    request = pb.ForkSessionRequest(source_session_id="main", session_id="child", request_id=ONCE, **fields)
    request.all.SetInParent()
    return request


# Each mutation of the service, on the session "main" with three records, an insight and a memory: a request, and the
# same request_id with another body.
MUTATIONS: list[tuple[str, Message, Message]] = [
    (
        "PutSession",
        pb.PutSessionRequest(session=pb.Session(id="main", label="new"), request_id=ONCE),
        pb.PutSessionRequest(session=pb.Session(id="main", label="other"), request_id=ONCE),
    ),
    (
        "ArchiveSession",
        pb.ArchiveSessionRequest(session_id="main", request_id=ONCE),
        pb.ArchiveSessionRequest(session_id="main", expected_version=1, request_id=ONCE),
    ),
    (
        "RestoreSession",
        pb.RestoreSessionRequest(session_id="main", request_id=ONCE),
        pb.RestoreSessionRequest(session_id="main", expected_version=1, request_id=ONCE),
    ),
    (
        "DeleteSession",
        pb.DeleteSessionRequest(session_id="main", request_id=ONCE),
        pb.DeleteSessionRequest(session_id="main", expected_version=1, request_id=ONCE),
    ),
    (
        "AppendRecords",
        pb.AppendRecordsRequest(session_id="main", records=[user("x"), user("y")], request_id=ONCE),
        pb.AppendRecordsRequest(session_id="main", records=[user("x"), user("z")], request_id=ONCE),
    ),
    (
        "TrimRecords",
        pb.TrimRecordsRequest(session_id="main", keep_last=2, request_id=ONCE),
        pb.TrimRecordsRequest(session_id="main", keep_last=1, request_id=ONCE),
    ),
    (
        "TruncateRecords",
        pb.TruncateRecordsRequest(session_id="main", after_seq=2, request_id=ONCE),
        pb.TruncateRecordsRequest(session_id="main", after_seq=1, request_id=ONCE),
    ),
    (
        "EraseRecord",
        pb.EraseRecordRequest(session_id="main", seq=2, request_id=ONCE),
        pb.EraseRecordRequest(session_id="main", seq=1, request_id=ONCE),
    ),
    (
        "PutSystemPrompt",
        pb.PutSystemPromptRequest(session_id="main", content="new", request_id=ONCE),
        pb.PutSystemPromptRequest(session_id="main", content="other", request_id=ONCE),
    ),
    (
        "PutInsight",
        pb.PutInsightRequest(session_id="main", content="new", request_id=ONCE),
        pb.PutInsightRequest(session_id="main", content="other", request_id=ONCE),
    ),
    (
        "ClearInsight",
        pb.ClearInsightRequest(session_id="main", request_id=ONCE),
        pb.ClearInsightRequest(session_id="main", expected_version=1, request_id=ONCE),
    ),
    (
        "PutMemory",
        pb.PutMemoryRequest(session_id="main", content="new", request_id=ONCE),
        pb.PutMemoryRequest(session_id="main", request_id=ONCE),
    ),
    ("ForkSession", _fork_request(label="one"), _fork_request(label="other")),
]
EACH_MUTATION = pytest.mark.parametrize(
    ("method", "request_", "other"), MUTATIONS, ids=[method for method, _, _ in MUTATIONS]
)


def call(storage: SessionStorageStub, method: str, request: Message) -> Message:
    """Call a method by its name."""
    made: Callable[[Message], Message] = getattr(storage, method)
    return made(request)


def state(storage: SessionStorageStub) -> list[Message]:
    """All that the space shows."""
    seen: list[Message] = []
    for session in storage.ListSessions(pb.ListSessionsRequest()).sessions:
        seen += [session, *history(storage, session.id)]
        slots = [pb.SLOT_NAME_SYSTEM_PROMPT, pb.SLOT_NAME_INSIGHT, pb.SLOT_NAME_MEMORY]
        seen += storage.BatchGetSlots(pb.BatchGetSlotsRequest(session_ids=[session.id], slots=slots))
    return seen


class OverASession:
    @pytest.fixture
    def main(self, storage: SessionStorageStub) -> str:
        """The session that the mutations write to."""
        put(storage, "main")
        append(storage, "main", *users(3))
        put_insight(storage, "main", "insight")
        put_memory(storage, "main", "memory")
        return "main"


class TestEveryMutation(OverASession):
    def test_every_method_that_takes_a_request_id_is_tried(self) -> None:
        [service] = pb.DESCRIPTOR.services_by_name.values()
        taking = [method.name for method in service.methods if "request_id" in method.input_type.fields_by_name]
        assert sorted(taking) == sorted(method for method, _, _ in MUTATIONS)

    @EACH_MUTATION
    def test_the_same_again_changes_nothing_and_answers_the_same(
        self, storage: SessionStorageStub, main: str, method: str, request_: Message, other: Message
    ) -> None:
        """anthropic-sdk-java#370: same key, same body -> first result."""
        first = call(storage, method, request_)
        after = state(storage)
        assert call(storage, method, request_) == first
        assert state(storage) == after

    @EACH_MUTATION
    def test_the_same_id_with_another_body_is_refused(
        self, storage: SessionStorageStub, main: str, method: str, request_: Message, other: Message
    ) -> None:
        """anthropic-sdk-java#370: same key, another body -> refused."""
        call(storage, method, request_)
        after = state(storage)
        with reused_request_id():
            call(storage, method, other)
        assert state(storage) == after

    @EACH_MUTATION
    def test_the_same_id_with_another_method_is_refused(
        self, storage: SessionStorageStub, main: str, method: str, request_: Message, other: Message
    ) -> None:
        call(storage, method, request_)
        used_elsewhere = next(request for name, request, _ in MUTATIONS if name not in {method, "DeleteSession"})
        elsewhere = next(name for name, _, _ in MUTATIONS if name not in {method, "DeleteSession"})
        with reused_request_id():
            call(storage, elsewhere, used_elsewhere)

    @EACH_MUTATION
    def test_many_at_the_same_moment_are_one(
        self, storage: SessionStorageStub, main: str, method: str, request_: Message, other: Message
    ) -> None:
        with ThreadPoolExecutor(6) as pool:
            replies = list(pool.map(lambda _: call(storage, method, request_), range(6)))
        assert all(reply == replies[0] for reply in replies)
        after = state(storage)
        assert call(storage, method, request_) == replies[0]
        assert state(storage) == after

    @EACH_MUTATION
    def test_without_a_request_id_a_repeated_call_is_a_new_call(
        self, storage: SessionStorageStub, main: str, method: str, request_: Message, other: Message
    ) -> None:
        bare = type(request_).FromString(request_.SerializeToString())
        bare.ClearField("request_id")
        call(storage, method, bare)
        if method == "DeleteSession":
            with unknown_session():
                call(storage, method, bare)
        elif method == "ForkSession":
            with refused(grpc.StatusCode.ALREADY_EXISTS, "SESSION_EXISTS"):
                call(storage, method, bare)
        else:
            call(storage, method, bare)
        if method == "AppendRecords":
            assert texts(storage, main) == ["r1", "r2", "r3", "x", "y", "x", "y"]

    @EACH_MUTATION
    @pytest.mark.parametrize("request_id", [" x", "x ", "é", "a\x00b", "a\nb"])
    def test_a_bad_request_id_is_refused(
        self, storage: SessionStorageStub, main: str, method: str, request_: Message, other: Message, request_id: str
    ) -> None:
        bad = type(request_).FromString(request_.SerializeToString())
        bad.request_id = request_id  # type: ignore[attr-defined]  # every mutation has it
        before = state(storage)
        with bad_field("request_id"):
            call(storage, method, bad)
        assert state(storage) == before


class TestRepeats(OverASession):
    def test_a_repeated_append_tells_the_session_as_it_is_now(self, storage: SessionStorageStub, main: str) -> None:
        first = append(storage, main, user("once"), turn_delta=1, request_id=ONCE)
        append(storage, main, user("later"), turn_delta=1)
        again = append(storage, main, user("once"), turn_delta=1, request_id=ONCE)
        assert list(again.seqs) == list(first.seqs)
        assert again.session == get(storage, main)
        assert texts(storage, main).count("once") == 1

    def test_a_repeated_append_to_a_session_that_is_gone_tells_its_seqs(
        self, storage: SessionStorageStub, main: str
    ) -> None:
        first = append(storage, main, user("once"), request_id=ONCE)
        delete(storage, main)
        again = append(storage, main, user("once"), request_id=ONCE)
        assert list(again.seqs) == list(first.seqs)
        assert not again.HasField("session")
        with unknown_session():
            get(storage, main)

    def test_a_repeated_append_with_an_expected_head_is_not_stale(self, storage: SessionStorageStub, main: str) -> None:
        first = append(storage, main, user("once"), expected_head_seq=3, request_id=ONCE)
        append(storage, main, user("later"))
        again = append(storage, main, user("once"), expected_head_seq=3, request_id=ONCE)
        assert list(again.seqs) == list(first.seqs)

    def test_a_repeat_tells_the_version_of_its_first_result(self, storage: SessionStorageStub, main: str) -> None:
        first = put(storage, main, label="first", request_id="op-1")
        put(storage, main, label="later")
        assert put(storage, main, label="first", request_id="op-1").version == first.version
        insight = pb.PutInsightRequest(session_id=main, content="first", request_id="op-2")
        slot = storage.PutInsight(insight)
        put_insight(storage, main, "later")
        assert storage.PutInsight(insight).version == slot.version
        assert (get(storage, main).label, get_insight(storage, main).content) == ("later", "later")

    def test_repeated_cuts_tell_their_first_result(self, storage: SessionStorageStub, main: str) -> None:
        trim = pb.TrimRecordsRequest(session_id=main, keep_last=2, request_id="op-1")
        trimmed = storage.TrimRecords(trim)
        rewind = pb.TruncateRecordsRequest(session_id=main, after_seq=2, request_id="op-2")
        rewound = storage.TruncateRecords(rewind)
        append(storage, main, *users(5))
        assert (storage.TrimRecords(trim), storage.TruncateRecords(rewind)) == (trimmed, rewound)
        assert len(texts(storage, main)) == 6

    def test_a_repeated_turn_consumes_the_insight_once_and_says_so_again(
        self, storage: SessionStorageStub, main: str
    ) -> None:
        version = get_insight(storage, main).version
        first = append(storage, main, user(), consume_insight_version=version, request_id=ONCE)
        newer = put_insight(storage, main, "newer")
        again = append(storage, main, user(), consume_insight_version=version, request_id=ONCE)
        assert first.insight_consumed
        assert again.insight_consumed
        assert again.insight_version == first.insight_version
        assert get_insight(storage, main) == newer

    def test_a_refused_request_leaves_its_id_free(self, storage: SessionStorageStub, main: str) -> None:
        with stale_head():
            append(storage, main, user("x"), expected_head_seq=1, request_id=ONCE)
        assert append(storage, main, user("y"), request_id=ONCE).seqs[0] == 4
        with unknown_session():
            append(storage, "nobody", user(), request_id="op-2")
        put(storage, "nobody")
        append(storage, "nobody", user(), request_id="op-2")

    def test_a_repeated_create_only_is_not_refused(self, storage: SessionStorageStub) -> None:
        first = put(storage, "fresh", label="L", expected_version=0, request_id=ONCE)
        assert put(storage, "fresh", label="L", expected_version=0, request_id=ONCE) == first

    def test_a_repeated_create_without_an_id_names_the_same_session(self, storage: SessionStorageStub) -> None:
        first = put(storage, label="L", request_id=ONCE)
        assert put(storage, label="L", request_id=ONCE) == first
        assert len(storage.ListSessions(pb.ListSessionsRequest()).sessions) == 1

    def test_a_repeated_fork_without_an_id_names_the_same_child(self, storage: SessionStorageStub, main: str) -> None:
        request = pb.ForkSessionRequest(source_session_id=main, request_id=ONCE)
        first = storage.ForkSession(request)
        delete(storage, main)
        assert storage.ForkSession(request) == first

    def test_a_repeated_delete_is_no_error(self, storage: SessionStorageStub, main: str) -> None:
        request = pb.DeleteSessionRequest(session_id=main, request_id=ONCE)
        storage.DeleteSession(request)
        put(storage, main, label="anew")
        storage.DeleteSession(request)
        assert get(storage, main).label == "anew"

    def test_a_repeat_whose_session_is_gone_is_not_found(self, storage: SessionStorageStub, main: str) -> None:
        put(storage, main, label="L", request_id=ONCE)
        delete(storage, main)
        with unknown_session():
            put(storage, main, label="L", request_id=ONCE)
        with unknown_session():
            get(storage, main)

    def test_create_only_at_the_same_moment_under_different_ids_is_refused_to_all_but_one(
        self, storage: SessionStorageStub
    ) -> None:
        creates = [partial(put, storage, "fresh", expected_version=0, request_id=f"op-{number}") for number in range(6)]
        with ThreadPoolExecutor(6) as pool:
            assert sorted(map(str, pool.map(reason_of, creates))) == ["None"] + ["SESSION_EXISTS"] * 5

    def test_request_ids_are_compared_byte_for_byte(self, storage: SessionStorageStub, main: str) -> None:
        append(storage, main, user("a"), request_id="Op")
        append(storage, main, user("b"), request_id="op")
        assert texts(storage, main)[3:] == ["a", "b"]

    def test_a_request_id_of_128_characters_is_taken_and_a_longer_one_refused(
        self, storage: SessionStorageStub, main: str
    ) -> None:
        append(storage, main, user("a"), request_id="x" * 128)
        with too_large(128, names="request_id"):
            append(storage, main, user("b"), request_id="x" * 129)

    def test_a_fork_under_a_used_id_is_refused(self, storage: SessionStorageStub, main: str) -> None:
        append(storage, main, user("a"), request_id=ONCE)
        with reused_request_id():
            storage.ForkSession(_fork_request())
        fork(storage, main)
