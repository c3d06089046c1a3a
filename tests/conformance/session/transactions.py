"""Transact: what a transaction sees, what it applies, and what ends it."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from google.protobuf.empty_pb2 import Empty

from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from tests.conformance.backends import Backend
from tests.conformance.calling import within
from tests.conformance.refusing import archived, bad_field, refused, stale_head, stale_version, unknown_session
from tests.conformance.session.making import (
    answering,
    append,
    archive,
    calling,
    get,
    get_insight,
    put,
    put_insight,
    put_memory,
    rewind,
    seqs,
    texts,
    trim,
    user,
    users,
)
from tests.conformance.session.transacting import Transaction, requests


def memory_of(storage: SessionStorageStub, session_id: str) -> pb.Slot:
    """Read the memory of a session."""
    return storage.GetMemory(pb.GetMemoryRequest(session_id=session_id))


class TestTransactions:
    def test_writes_to_many_sessions_are_applied_by_the_commit(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(5))
        with Transaction(storage) as transaction:
            made = transaction.put_session("other", label="Other", expected_version=0)
            told = [transaction.append("other", user("one"), turn_delta=1), transaction.append("other", user("two"))]
            memory = transaction.put_memory(session, "remembered")
            trimmed = transaction.trim(session, 3)
            head_seq = transaction.rewind(session, 4).head_seq
            last = transaction.append(session, user("after"))
            transaction.commit()

        assert get(storage, "other") == told[1].session
        assert (told[0].session.id, told[0].session.label, told[0].session.turn_count) == ("other", "Other", 1)
        assert made.created_at == get(storage, "other").created_at
        assert [list(each.seqs) for each in told] == [[1], [2]]
        assert texts(storage, "other") == ["one", "two"]
        assert memory_of(storage, session) == memory
        assert (trimmed.kept_records, trimmed.floor_seq, head_seq, list(last.seqs)) == (3, 2, 6, [7])
        assert texts(storage, session) == ["r3", "r4", "after"]
        assert seqs(storage, session) == [3, 4, 7]

    def test_nobody_sees_a_write_before_the_commit(self, storage: SessionStorageStub, session: str) -> None:
        with Transaction(storage) as transaction:
            transaction.append(session, user("mine"))
            transaction.put_memory(session, "mine")
            transaction.put_session("made")
            assert texts(storage, session) == []
            assert not memory_of(storage, session).HasField("content")
            with unknown_session():
                get(storage, "made")
            transaction.commit()
        assert texts(storage, session) == ["mine"]

    def test_the_end_of_the_stream_without_a_commit_applies_nothing(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        with Transaction(storage, "given-up") as transaction:
            transaction.append(session, user())
            assert transaction.end() == []
        assert texts(storage, session) == []
        with Transaction(storage, "given-up") as again:
            assert not again.already_committed

    def test_a_stream_that_ends_at_once_is_no_transaction(self, storage: SessionStorageStub) -> None:
        with Transaction(storage, None) as transaction:
            assert transaction.end() == []

    def test_a_cancelled_stream_leaves_nothing_behind(self, storage: SessionStorageStub, session: str) -> None:
        with Transaction(storage, "cancelled") as transaction:
            transaction.get_session(session)
            transaction.append(session, user("never"))
            transaction.put_session("never")
            # Nothing is locked while it is open, nor after it is gone: other writers go on at once.
            append(storage, session, user("other"))
            put(storage, "never", expected_version=0)
            transaction.call.cancel()
        append(storage, session, user("later"))
        assert texts(storage, session) == ["other", "later"]
        with Transaction(storage, "cancelled") as again:
            assert not again.already_committed

    def test_a_refused_step_ends_the_transaction_and_nothing_is_applied(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        with Transaction(storage) as transaction:
            transaction.append(session, user())
            with stale_head() as refusal:
                transaction.append(session, user(), expected_head_seq=0)
        assert refusal.metadata == {"head_seq": "1", "step": "2"}
        assert refusal.fields == ["append_records.expected_head_seq"]
        assert texts(storage, session) == []

    def test_a_transaction_that_only_reads_commits(self, storage: SessionStorageStub, session: str) -> None:
        with Transaction(storage) as transaction:
            assert transaction.get_session(session) == get(storage, session)
            transaction.commit()

    def test_an_empty_transaction_commits(self, storage: SessionStorageStub) -> None:
        with Transaction(storage) as transaction:
            transaction.commit()

    def test_messages_may_be_sent_before_their_answers_are_read(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        appends = [pb.AppendRecordsRequest(session_id=session, records=[user(str(n))]) for n in range(20)]
        steps = [pb.TransactRequest(append_records=each) for each in appends]
        answers = list(storage.Transact(requests(*steps, request_id="ahead")))
        assert [list(answer.append_records.seqs) for answer in answers[1:-1]] == [[n] for n in range(1, 21)]
        assert texts(storage, session) == [str(n) for n in range(20)]


class TestTransactionsOwnWrites:
    def test_every_read_sees_them(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(4))
        put_insight(storage, session, "hint")
        with Transaction(storage) as transaction:
            transaction.put_session(session, label="renamed")
            transaction.append(session, user("five"), turn_delta=2, consume_insight_version=1)
            told = transaction.get_session(session)
            assert (told.label, told.version, told.head_seq, told.turn_count) == ("renamed", 2, 5, 2)
            insight = transaction.get_insight(session)
            assert (insight.HasField("content"), insight.version) == (False, 2)
            assert transaction.put_memory(session, "first").version == 1
            assert transaction.put_memory(session, "second").version == 2
            assert transaction.get_memory(session).content == "second"
            put_prompt = pb.PutSystemPromptRequest(session_id=session, content="Be brief.")
            assert transaction.step(put_system_prompt=put_prompt).slot.version == 1
            assert transaction.get_system_prompt(session).content == "Be brief."
            assert transaction.texts(session) == ["r1", "r2", "r3", "r4", "five"]
            transaction.commit()
        assert get(storage, session) == told
        assert get_insight(storage, session) == insight
        assert memory_of(storage, session).content == "second"

    def test_a_session_that_it_made_is_there_for_it(self, storage: SessionStorageStub) -> None:
        with Transaction(storage) as transaction:
            put = pb.PutSessionRequest(session=pb.Session(label="new"), system_prompt="Be brief.")
            made = transaction.step(put_session=put).session
            assert len(made.id) > 0
            assert transaction.get_session(made.id) == made
            assert transaction.get_system_prompt(made.id).content == "Be brief."
            assert transaction.get_memory(made.id) == pb.Slot()
            assert transaction.page(made.id) == pb.ListRecordsResponse()
            with refused(grpc.StatusCode.ALREADY_EXISTS, "SESSION_EXISTS"):
                transaction.put_session(made.id, expected_version=0)
        with unknown_session():
            get(storage, made.id)

    def test_pages_join_committed_and_own_records_either_way(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(3), calling("a"), answering("a"))
        own = [calling("b"), answering("b"), user("mine"), calling("c"), answering("c")]
        with Transaction(storage) as transaction:
            transaction.append(session, *own[:2])
            transaction.rewind(session, 6)
            transaction.append(session, *own[2:])
            transaction.trim(session, 7)
            shown = transaction.page(session)
            pages = _all_pages(transaction, session)
            transaction.commit()
        # The answer b was dropped with the rewind, which used up seq 8.
        assert [record.seq for record in shown.records] == [3, 4, 5, 6, 9, 10, 11]
        assert pages == _all_pages(storage, session)

    def test_a_page_goes_on_by_its_token(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(3))
        with Transaction(storage) as transaction:
            transaction.append(session, *users(3, "own"))
            first = transaction.page(session, page_size=4)
            assert [record.content for record in first.records] == ["r1", "r2", "r3", "own1"]
            second = transaction.page(session, page_size=4, page_token=first.next_page_token)
            assert [record.content for record in second.records] == ["own2", "own3"]
            assert second.next_page_token == ""
            transaction.commit()
        # The token was given for what is committed now.
        page = pb.ListRecordsRequest(session_id=session, page_size=4, page_token=first.next_page_token)
        assert storage.ListRecords(page) == second

    def test_a_token_of_a_session_that_it_made_is_good_after_the_commit(self, storage: SessionStorageStub) -> None:
        with Transaction(storage) as transaction:
            transaction.put_session("made")
            transaction.append("made", *users(3))
            token = transaction.page("made", page_size=2).next_page_token
            transaction.commit()
        page = storage.ListRecords(pb.ListRecordsRequest(session_id="made", page_size=2, page_token=token))
        assert [record.content for record in page.records] == ["r3"]

    def test_tool_call_groups_span_committed_and_own_records(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, user(), calling("a"))
        with Transaction(storage) as transaction:
            transaction.append(session, answering("a"), calling("b", "c"))
            transaction.append(session, answering("b"))
            assert transaction.trim(session, 1).kept_records == 2
            transaction.append(session, user("next"))
            transaction.commit()
        forked = storage.ForkSession(pb.ForkSessionRequest(source_session_id=session, session_id="child", all=Empty()))
        assert forked.incomplete_records == 2
        assert texts(storage, "child") == ["next"]


def _all_pages(source: Transaction | SessionStorageStub, session: str) -> list[list[int]]:
    """The seqs of every kind of page."""
    found = []
    roles = [(), (pb.ROLE_USER,), (pb.ROLE_TOOL, pb.ROLE_ASSISTANT)]
    for order in (pb.RECORD_ORDER_ASCENDING, pb.RECORD_ORDER_DESCENDING):
        for wanted in roles:
            for offset in range(9):
                request = pb.ListRecordsRequest(
                    session_id=session, roles=wanted, order=order, offset=offset, page_size=2
                )
                if isinstance(source, Transaction):
                    page = source.step(list_records=request).list_records
                else:
                    page = source.ListRecords(request)
                found.append([record.seq for record in page.records])
    return found


class TestTransactionsRefusedSteps:
    def test_writes_of_an_unknown_session(self, storage: SessionStorageStub) -> None:
        with Transaction(storage) as transaction, unknown_session() as refusal:
            transaction.append("nobody", user())
        assert refusal.metadata == {"step": "1"}

    def test_reads_of_an_unknown_session_are_answered(self, storage: SessionStorageStub) -> None:
        with Transaction(storage) as transaction:
            reads: list[dict[str, Any]] = [
                {"get_session": pb.GetSessionRequest(session_id="nobody")},
                {"list_records": pb.ListRecordsRequest(session_id="nobody")},
                {"get_memory": pb.GetMemoryRequest(session_id="nobody")},
                {"get_insight": pb.GetInsightRequest(session_id="nobody")},
                {"get_system_prompt": pb.GetSystemPromptRequest(session_id="nobody")},
            ]
            assert {transaction.step(**read).WhichOneof("result") for read in reads} == {"not_found"}
            transaction.put_session("nobody")
            transaction.commit()
        assert get(storage, "nobody").version == 1

    def test_writes_of_an_archived_session(self, storage: SessionStorageStub, session: str) -> None:
        archive(storage, session)
        with Transaction(storage) as transaction:
            assert transaction.get_session(session).status == pb.SESSION_STATUS_ARCHIVED
            with archived():
                transaction.put_memory(session, "no")

    def test_a_stale_version(self, storage: SessionStorageStub, session: str) -> None:
        with Transaction(storage) as transaction, stale_version() as refusal:
            transaction.put_memory(session, "no", expected_version=3)
        assert refusal.fields == ["put_memory.expected_version"]

    def test_a_bad_field_is_named_with_its_step(self, storage: SessionStorageStub, session: str) -> None:
        with Transaction(storage) as transaction:
            transaction.get_session(session)
            with bad_field("append_records.records[1].role") as refusal:
                transaction.append(session, user(), pb.Record(content="whose?"))
        assert refusal.metadata["step"] == "2"

    def test_a_request_id_of_its_own(self, storage: SessionStorageStub, session: str) -> None:
        with Transaction(storage) as transaction, bad_field("put_memory.request_id"):
            transaction.put_memory(session, "no", request_id="mine")

    def test_an_insight_without_content(self, storage: SessionStorageStub, session: str) -> None:
        with Transaction(storage) as transaction, bad_field("put_insight.content"):
            transaction.step(put_insight=pb.PutInsightRequest(session_id=session))

    def test_a_page_token_of_another_list(self, storage: SessionStorageStub, session: str) -> None:
        with (
            Transaction(storage) as transaction,
            refused(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_PAGE_TOKEN", names="list_records.page_token"),
        ):
            transaction.page(session, page_token="bm9uZQ")


class TestTransactionsMessages:
    def test_begin_comes_first(self, storage: SessionStorageStub, session: str) -> None:
        with Transaction(storage, None) as transaction, bad_field("step"):
            transaction.get_session(session)

    def test_begin_needs_a_request_id(self, storage: SessionStorageStub) -> None:
        with Transaction(storage, None) as transaction, bad_field("begin.request_id"):
            transaction.step(begin=pb.TransactBegin())

    def test_begin_comes_once(self, storage: SessionStorageStub) -> None:
        with Transaction(storage) as transaction, bad_field("begin.step"):
            transaction.step(begin=pb.TransactBegin(request_id="again"))

    def test_an_empty_message_is_refused(self, storage: SessionStorageStub) -> None:
        with Transaction(storage) as transaction, bad_field("step") as refusal:
            transaction.step()
        assert refusal.metadata == {"step": "1"}

    def test_a_commit_before_begin_is_refused(self, storage: SessionStorageStub) -> None:
        with Transaction(storage, None) as transaction, bad_field("step"):
            transaction.step(commit=pb.TransactCommit())


class TestTransactionSpaces:
    @pytest.fixture
    def elsewhere(self, backend: Backend, space: str) -> SessionStorageStub:
        """The same server, within another space."""
        return SessionStorageStub(within(backend.channel, f"{space}-other"))

    def test_a_transaction_sees_its_own_space_only(
        self, storage: SessionStorageStub, session: str, elsewhere: SessionStorageStub
    ) -> None:
        with Transaction(elsewhere) as transaction:
            transaction.put_session(session, label="other")
            transaction.append(session, user("other"))
            transaction.commit()
        assert texts(storage, session) == []
        assert get(storage, session).label == ""


class TestTransactionsInterference:
    """What others do to sessions that a transaction has not seen, or did before it looked, does not stop it."""

    def test_other_sessions_and_other_slots_may_move(self, storage: SessionStorageStub, session: str) -> None:
        put(storage, "other")
        with Transaction(storage) as transaction:
            assert transaction.get_memory(session).version == 0
            put_memory(storage, "other", "moved")
            put_insight(storage, session, "moved")
            append(storage, session, user("moved"))
            transaction.put_memory(session, "mine")
            transaction.commit()
        assert memory_of(storage, session).content == "mine"

    def test_what_moved_before_the_first_look_is_seen(self, storage: SessionStorageStub, session: str) -> None:
        with Transaction(storage) as transaction:
            append(storage, session, *users(3))
            trim(storage, session, 2)
            rewind(storage, session, 2)
            assert transaction.texts(session) == ["r2"]
            transaction.append(session, user("mine"))
            transaction.commit()
        assert texts(storage, session) == ["r2", "mine"]
