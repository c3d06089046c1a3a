"""Erasure: what is erased or dropped by its last session is in no table any more."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import grpc
import pytest

from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from tests.conformance.backends import Backend
from tests.conformance.refusing import archived, bad_field, reason_of, refused, unknown_session
from tests.conformance.session.making import (
    answering,
    append,
    archive,
    assistant,
    calling,
    context,
    delete,
    fork,
    get,
    history,
    put,
    rewind,
    texts,
    trim,
    user,
    users,
)


def erase(storage: SessionStorageStub, session_id: str, seq: int) -> pb.Record:
    """Erase one record."""
    return storage.EraseRecord(pb.EraseRecordRequest(session_id=session_id, seq=seq))


class WithASecret:
    @pytest.fixture
    def secret(self, space: str) -> str:
        """A text that stands nowhere else in the database."""
        return f"secret-of-{space}"


class TestErasingRecords(WithASecret):
    def test_content_and_json_go_and_the_place_stays(
        self, storage: SessionStorageStub, session: str, backend: Backend, secret: str
    ) -> None:
        full = pb.Record(
            role=pb.ROLE_ASSISTANT,
            content=f"text {secret}",
            parts_json=f'["{secret}"]',
            tool_calls=[pb.ToolCall(id="c1", name="look_up", arguments_json=f'{{"q": "{secret}"}}')],
            metadata_json=f'{{"m": "{secret}"}}',
        )
        full.client_time.FromSeconds(1_700_000_000)
        append(storage, session, user("before"), full, answering("c1"))
        before = history(storage, session)[1]
        erased = erase(storage, session, 2)
        assert (erased.content, erased.parts_json, erased.metadata_json) == ("", "", "")
        assert [(call.id, call.arguments_json) for call in erased.tool_calls] == [("c1", "")]
        assert (erased.seq, erased.role) == (2, pb.ROLE_ASSISTANT)
        assert (erased.client_time, erased.created_at) == (before.client_time, before.created_at)
        assert erased.erased_at.seconds > 0
        assert history(storage, session)[1] == erased
        assert backend.tables_holding(secret) == set()

    def test_erasing_again_changes_nothing(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, user("x"))
        first = erase(storage, session, 1)
        assert erase(storage, session, 1) == first

    def test_every_session_that_shows_the_record_shows_it_erased(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        append(storage, session, *users(3))
        fork(storage, session)
        fork(storage, "child", "grandchild")
        erase(storage, "grandchild", 2)
        for session_id in (session, "child", "grandchild"):
            assert texts(storage, session_id) == ["r1", "", "r3"]
            assert context(storage, session_id).records[1].HasField("erased_at")

    def test_a_tool_call_group_stays_whole(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, user("q"), calling("a"), answering("a"), assistant("done"))
        erase(storage, session, 2)
        erase(storage, session, 3)
        found = context(storage, session)
        assert len(found.records) == 4
        assert found.incomplete_records == 0
        assert trim(storage, session, 2).kept_records == 3

    def test_the_session_keeps_its_head_and_version(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(3))
        before = get(storage, session)
        erase(storage, session, 3)
        assert get(storage, session) == before

    def test_no_record_there_is_not_found(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(3))
        rewind(storage, session, 2)
        append(storage, session, user("new"))
        for seq in (3, 4, 99):
            with refused(grpc.StatusCode.NOT_FOUND, "RECORD_NOT_FOUND"):
                erase(storage, session, seq)

    def test_at_or_below_the_floor_is_out_of_range(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(3))
        trim(storage, session, 1)
        for seq in (1, 2):
            with refused(grpc.StatusCode.OUT_OF_RANGE, "BELOW_TRIM_FLOOR") as refusal:
                erase(storage, session, seq)
            assert refusal.metadata["floor_seq"] == "2"

    def test_a_seq_that_can_never_be_is_refused(self, storage: SessionStorageStub, session: str) -> None:
        for seq in (0, -1):
            with bad_field("seq"):
                erase(storage, session, seq)

    def test_an_archived_or_unknown_session_is_refused(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, user("kept"))
        archive(storage, session)
        with archived():
            erase(storage, session, 1)
        with unknown_session():
            erase(storage, "nobody", 1)
        assert texts(storage, session) == ["kept"]


class TestWhatNobodyShows(WithASecret):
    """Records that no session shows any more are erased by the call that dropped the last of them."""

    def test_deleting_the_only_session_erases_everything_of_it(
        self, storage: SessionStorageStub, backend: Backend, secret: str
    ) -> None:
        put(storage, "main", label=secret, tags=["t"], metadata_json=f'"{secret}"')
        append(storage, "main", user(secret), calling(secret), answering(secret))
        storage.PutMemory(pb.PutMemoryRequest(session_id="main", content=secret))
        storage.PutInsight(pb.PutInsightRequest(session_id="main", content=secret))
        storage.PutSystemPrompt(pb.PutSystemPromptRequest(session_id="main", content=secret))
        assert backend.tables_holding(secret)
        delete(storage, "main")
        assert backend.tables_holding(secret) == set()

    def test_a_trim_erases_what_only_this_session_showed(
        self, storage: SessionStorageStub, session: str, backend: Backend, secret: str
    ) -> None:
        append(storage, session, user(secret), user("kept"))
        trim(storage, session, 1)
        assert backend.tables_holding(secret) == set()

    def test_a_rewind_erases_what_only_this_session_showed(
        self, storage: SessionStorageStub, session: str, backend: Backend, secret: str
    ) -> None:
        append(storage, session, user("kept"), user(secret))
        rewind(storage, session, 1)
        assert backend.tables_holding(secret) == set()

    @pytest.mark.parametrize("last", ["source", "child", "grandchild"])
    def test_the_last_of_a_family_to_go_erases(
        self, storage: SessionStorageStub, backend: Backend, secret: str, last: str
    ) -> None:
        put(storage, "source")
        append(storage, "source", user(secret))
        fork(storage, "source")
        fork(storage, "child", "grandchild")
        for session_id in {"source", "child", "grandchild"} - {last}:
            delete(storage, session_id)
            assert backend.tables_holding(secret) == {"record"}
        assert texts(storage, last) == [secret]
        delete(storage, last)
        assert backend.tables_holding(secret) == set()

    def test_what_a_fork_did_not_inherit_goes_with_the_source(
        self, storage: SessionStorageStub, session: str, backend: Backend, secret: str
    ) -> None:
        append(storage, session, user("shared"), user(secret))
        fork(storage, session, up_to_seq=1)
        delete(storage, session)
        assert backend.tables_holding(secret) == set()
        assert texts(storage, "child") == ["shared"]

    def test_a_trim_of_every_holder_erases_what_all_dropped(
        self, storage: SessionStorageStub, session: str, backend: Backend, secret: str
    ) -> None:
        append(storage, session, user(secret), user("kept"))
        fork(storage, session)
        trim(storage, session, 1)
        assert backend.tables_holding(secret) == {"record"}
        trim(storage, "child", 1)
        assert backend.tables_holding(secret) == set()
        assert texts(storage, session) == texts(storage, "child") == ["kept"]

    def test_an_incomplete_group_that_a_fork_left_out_goes_with_the_source(
        self, storage: SessionStorageStub, session: str, backend: Backend, secret: str
    ) -> None:
        append(storage, session, user("1"), calling(secret), user("2"))
        fork(storage, session)
        delete(storage, session)
        assert backend.tables_holding(secret) == set()
        assert texts(storage, "child") == ["1", "2"]

    def test_a_family_deleted_all_at_once_leaves_nothing(
        self, storage: SessionStorageStub, session: str, backend: Backend, secret: str
    ) -> None:
        append(storage, session, user(secret))
        children = [f"c{number}" for number in range(6)]
        for child in children:
            fork(storage, session, child)
        with ThreadPoolExecutor(7) as pool:
            list(pool.map(lambda session_id: delete(storage, session_id), [session, *children]))
        assert backend.tables_holding(secret) == set()

    def test_a_fork_beside_the_deletion_of_its_source_is_whole_or_refused(
        self, storage: SessionStorageStub, session: str, backend: Backend, secret: str
    ) -> None:
        append(storage, session, *[user(f"{secret}{number}") for number in range(5)])
        children = [f"c{number}" for number in range(6)]

        with ThreadPoolExecutor(7) as pool:
            forking = [pool.submit(reason_of, partial(fork, storage, session, child)) for child in children]
            delete(storage, session)
            reasons = [done.result() for done in forking]
        assert set(reasons) <= {None, "SESSION_NOT_FOUND"}
        for child in [child for child, reason in zip(children, reasons, strict=True) if reason is None]:
            assert texts(storage, child) == [f"{secret}{number}" for number in range(5)]
            delete(storage, child)
        assert backend.tables_holding(secret) == set()

    def test_a_large_history_is_erased_whole(
        self, storage: SessionStorageStub, session: str, backend: Backend, secret: str
    ) -> None:
        for _ in range(3):
            append(storage, session, *[user(secret) for _ in range(1000)])
        delete(storage, session)
        assert backend.tables_holding(secret) == set()
