"""Appends: seqs, heads, turns, and what happens when many come at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial

import pytest

from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from tests.conformance.refusing import archived, bad_field, reason_of, stale_head, unknown_session
from tests.conformance.session.making import (
    answering,
    append,
    archive,
    calling,
    delete,
    get,
    history,
    put,
    seqs,
    texts,
    user,
    users,
)


class TestAppending:
    def test_records_get_ascending_seqs_and_come_back_as_given(self, storage: SessionStorageStub, session: str) -> None:
        given = [
            pb.Record(role=pb.ROLE_SYSTEM, content="rules", name="policy"),
            pb.Record(role=pb.ROLE_USER, content="你好 👋🏽", parts_json='[{"t": 1}]', metadata_json='{"a": [1]}'),
            calling("c1", "c2", arguments_json='{"q": "x"}'),
            answering("c1"),
            answering("c2"),
            pb.Record(role=pb.ROLE_ASSISTANT),
        ]
        reply = append(storage, session, *given)
        assert list(reply.seqs) == sorted(set(reply.seqs))
        stored = history(storage, session)
        assert [record.seq for record in stored] == list(reply.seqs)
        for record in stored:
            assert record.created_at.seconds > 0
            record.ClearField("seq")
            record.ClearField("created_at")
        assert stored == given

    def test_the_first_seq_is_one(self, storage: SessionStorageStub, session: str) -> None:
        assert list(append(storage, session, user(), user()).seqs) == [1, 2]

    def test_the_reply_tells_the_session_after_the_append(self, storage: SessionStorageStub, session: str) -> None:
        reply = append(storage, session, user(), user(), turn_delta=2)
        assert (reply.session.head_seq, reply.session.turn_count) == (reply.seqs[-1], 2)
        assert reply.session == get(storage, session)
        assert (reply.insight_consumed, reply.insight_version) == (False, 0)

    def test_an_append_moves_last_active_at_only(self, storage: SessionStorageStub, session: str) -> None:
        before = get(storage, session)
        after = append(storage, session, user()).session
        assert after.last_active_at.ToNanoseconds() > before.last_active_at.ToNanoseconds()
        assert (after.updated_at, after.version) == (before.updated_at, before.version)

    def test_turns_add_up(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, user(), turn_delta=1)
        append(storage, session, user())
        assert append(storage, session, user(), turn_delta=1000).session.turn_count == 1001

    @pytest.mark.parametrize("delta", [-1, 1001])
    def test_a_turn_delta_out_of_range_is_refused(self, storage: SessionStorageStub, session: str, delta: int) -> None:
        with bad_field("turn_delta"):
            append(storage, session, user(), turn_delta=delta)

    def test_output_only_fields_are_ignored(self, storage: SessionStorageStub, session: str) -> None:
        record = pb.Record(role=pb.ROLE_USER, content="x", seq=77)
        record.created_at.FromSeconds(1)
        record.erased_at.FromSeconds(1)
        append(storage, session, record)
        [stored] = history(storage, session)
        assert stored.seq == 1
        assert stored.created_at.seconds > 1
        assert not stored.HasField("erased_at")

    def test_an_append_to_an_unknown_session_is_not_found_and_makes_none(self, storage: SessionStorageStub) -> None:
        with unknown_session():
            append(storage, "nobody", user())
        with unknown_session():
            get(storage, "nobody")

    def test_an_append_of_nothing_is_refused(self, storage: SessionStorageStub, session: str) -> None:
        with bad_field("records"):
            append(storage, session)

    def test_all_or_none(self, storage: SessionStorageStub, session: str) -> None:
        with bad_field("records[1].role"):
            append(storage, session, user("good"), pb.Record(content="no role"))
        assert history(storage, session) == []
        assert get(storage, session).head_seq == 0

    def test_an_archived_session_takes_none(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, user("kept"))
        archive(storage, session)
        with archived():
            append(storage, session, user("late"))
        assert texts(storage, session) == ["kept"]

    def test_client_times_are_kept_and_order_nothing(self, storage: SessionStorageStub, session: str) -> None:
        """adk-python#480: twenty records of the same client time keep the order of insertion."""
        same = [user(f"r{number}") for number in range(20)]
        for record in same:
            record.client_time.FromDatetime(datetime(2024, 5, 1, 12, tzinfo=UTC))
        append(storage, session, *same)
        backwards = user("earlier by its own clock")
        backwards.client_time.FromJsonString("1999-12-31T23:59:59.123456789Z")
        append(storage, session, backwards)
        stored = history(storage, session)
        assert [record.content for record in stored] == [f"r{number}" for number in range(20)] + [backwards.content]
        assert [record.client_time for record in stored] == [record.client_time for record in [*same, backwards]]

    def test_a_client_time_that_is_no_time_is_refused(self, storage: SessionStorageStub, session: str) -> None:
        record = user()
        record.client_time.nanos = -5
        with bad_field("records[0].client_time"):
            append(storage, session, record)

    def test_a_large_error_text_is_kept_with_the_turn(self, storage: SessionStorageStub, session: str) -> None:
        """adk-python#2821: an error text of 1 MB is kept, and the turn that met it is not lost."""
        trace = "Traceback: étape 失败\n" * 45_000
        assert len(trace.encode()) > 1_000_000
        failed = answering("c1")
        failed.content = trace
        append(storage, session, user(), calling("c1"), failed, turn_delta=1)
        assert history(storage, session)[2].content == trace
        assert get(storage, session).turn_count == 1


class TestRecordRules:
    @pytest.mark.parametrize(
        ("record", "path"),
        [
            (pb.Record(content="x"), "records[0].role"),
            (pb.Record(role=77), "records[0].role"),  # type: ignore[arg-type]  # of a later contract
            (pb.Record(role=pb.ROLE_TOOL, content="x"), "records[0].tool_call_id"),
            (pb.Record(role=pb.ROLE_USER, tool_call_id="c1"), "records[0].tool_call_id"),
            (pb.Record(role=pb.ROLE_USER, tool_calls=[pb.ToolCall(id="c", name="n")]), "records[0].tool_calls"),
            (pb.Record(role=pb.ROLE_ASSISTANT, tool_calls=[pb.ToolCall(name="n")]), "records[0].tool_calls[0].id"),
            (pb.Record(role=pb.ROLE_ASSISTANT, tool_calls=[pb.ToolCall(id="c")]), "records[0].tool_calls[0].name"),
            (
                pb.Record(role=pb.ROLE_ASSISTANT, tool_calls=[pb.ToolCall(id="c", name="n")] * 2),
                "records[0].tool_calls[1].id",
            ),
        ],
    )
    def test_a_record_that_breaks_a_rule_is_refused(
        self, storage: SessionStorageStub, session: str, record: pb.Record, path: str
    ) -> None:
        with bad_field(path):
            append(storage, session, record)
        assert get(storage, session).head_seq == 0


class TestExpectedHeads:
    def test_the_current_head_holds(self, storage: SessionStorageStub, session: str) -> None:
        head = append(storage, session, user("a"), expected_head_seq=0).session.head_seq
        append(storage, session, user("b"), expected_head_seq=head)
        assert texts(storage, session) == ["a", "b"]

    def test_a_stale_head_is_aborted_and_told(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, user("a"))
        with stale_head() as refusal:
            append(storage, session, user("b"), expected_head_seq=0)
        assert refusal.metadata["head_seq"] == "1"
        assert texts(storage, session) == ["a"]

    def test_a_head_that_never_was_is_stale(self, storage: SessionStorageStub, session: str) -> None:
        with stale_head():
            append(storage, session, user(), expected_head_seq=5)

    def test_of_two_appends_at_one_head_one_is_aborted_and_the_winner_intact(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        """langgraph#8796: two writers from the same head; the loser must not overwrite or interleave."""

        def write(writer: str) -> str | None:
            records = [user(f"{writer}1"), user(f"{writer}2")]
            return reason_of(partial(append, storage, session, *records, expected_head_seq=0))

        with ThreadPoolExecutor(2) as pool:
            reasons = dict(zip("ab", pool.map(write, "ab"), strict=True))
        [won] = [writer for writer, reason in reasons.items() if reason is None]
        assert sorted(map(str, reasons.values())) == ["None", "STALE_HEAD"]
        assert texts(storage, session) == [f"{won}1", f"{won}2"]

    def test_a_hundred_appends_in_a_row_each_hold_the_head_that_the_last_one_told(
        self, storage: SessionStorageStub
    ) -> None:
        """adk-python#5085 and #3717: create, then append with what came back; none is refused for a rounded time."""
        current = put(storage, "main")
        for number in range(100):
            current = append(storage, "main", user(f"r{number}"), expected_head_seq=current.head_seq).session
        assert texts(storage, "main") == [f"r{number}" for number in range(100)]


class TestAppendsAtOnce:
    def test_fifty_parallel_appends_give_fifty_seqs(self, storage: SessionStorageStub, session: str) -> None:
        """openai-agents-python#2722: fifty parallel appends to a new session; none lost, none refused."""
        with ThreadPoolExecutor(50) as pool:
            replies = list(pool.map(lambda number: append(storage, session, user(f"r{number}")), range(50)))
        given = {reply.seqs[0]: f"r{number}" for number, reply in enumerate(replies)}
        assert sorted(given) == list(range(1, 51))
        assert {record.seq: record.content for record in history(storage, session)} == given
        assert get(storage, session).head_seq == 50

    def test_parallel_batches_stay_together(self, storage: SessionStorageStub, session: str) -> None:
        def write(number: int) -> list[int]:
            return list(append(storage, session, *users(5, f"w{number}-"), turn_delta=1).seqs)

        with ThreadPoolExecutor(8) as pool:
            given = list(pool.map(write, range(16)))
        assert all(batch == list(range(batch[0], batch[0] + 5)) for batch in given)
        assert seqs(storage, session) == list(range(1, 81))
        assert get(storage, session).turn_count == 16

    def test_appends_to_different_sessions_do_not_meet(self, storage: SessionStorageStub) -> None:
        ids = [f"s{number}" for number in range(8)]
        for session_id in ids:
            put(storage, session_id)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda session_id: append(storage, session_id, *users(3, session_id)), ids * 4))
        for session_id in ids:
            assert texts(storage, session_id) == [f"{session_id}{number}" for number in (1, 2, 3)] * 4

    def test_the_same_session_created_by_many_at_once_is_one(self, storage: SessionStorageStub) -> None:
        create = partial(put, storage, "main", expected_version=0)
        with ThreadPoolExecutor(8) as pool:
            reasons = list(pool.map(reason_of, [create] * 8))
        assert reasons.count(None) == 1
        assert reasons.count("SESSION_EXISTS") == 7

    def test_create_or_update_by_many_at_once_refuses_nobody(self, storage: SessionStorageStub) -> None:
        with ThreadPoolExecutor(8) as pool:
            versions = [made.version for made in pool.map(lambda n: put(storage, "main", label=f"l{n}"), range(8))]
        assert sorted(versions) == list(range(1, 9))

    def test_an_append_and_a_delete_at_once_leave_no_half(self, storage: SessionStorageStub) -> None:
        for number in range(10):
            session_id = f"s{number}"
            put(storage, session_id)
            with ThreadPoolExecutor(2) as pool:
                writing = pool.submit(reason_of, partial(append, storage, session_id, user("text")))
                delete(storage, session_id)
                assert writing.result() in {None, "SESSION_NOT_FOUND"}
            with unknown_session():
                get(storage, session_id)
