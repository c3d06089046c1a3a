"""Trims: the most recent records stay. (That no tool-call group is split is told in tool_groups.)"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from tests.conformance.refusing import archived, bad_field, stale_head, unknown_session
from tests.conformance.session.making import append, archive, fork, get, seqs, texts, trim, user, users


class TestTrimming:
    def test_the_most_recent_stay_under_their_seqs(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(10))
        reply = trim(storage, session, 3)
        assert (reply.kept_records, reply.floor_seq) == (3, 7)
        assert seqs(storage, session) == [8, 9, 10]
        after = get(storage, session)
        assert (after.head_seq, after.floor_seq) == (10, 7)

    def test_keeping_more_than_there_are_changes_nothing(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(3))
        reply = trim(storage, session, 10)
        assert (reply.kept_records, reply.floor_seq) == (3, 0)
        assert texts(storage, session) == ["r1", "r2", "r3"]

    def test_keeping_none_drops_all_and_seqs_go_on(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(3))
        reply = trim(storage, session, 0)
        assert (reply.kept_records, reply.floor_seq) == (0, 3)
        assert texts(storage, session) == []
        assert append(storage, session, user("next")).seqs[0] > 3
        assert texts(storage, session) == ["next"]

    def test_an_empty_session_stays_as_it_is(self, storage: SessionStorageStub, session: str) -> None:
        reply = trim(storage, session, 0)
        assert (reply.kept_records, reply.floor_seq) == (0, 0)

    def test_the_version_and_activity_stay(self, storage: SessionStorageStub, session: str) -> None:
        before = append(storage, session, *users(3)).session
        trim(storage, session, 1)
        after = get(storage, session)
        assert (after.version, after.last_active_at, after.turn_count) == (
            before.version,
            before.last_active_at,
            before.turn_count,
        )

    def test_a_trim_again_and_again_only_takes_more(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(10))
        trim(storage, session, 4)
        reply = trim(storage, session, 9)
        assert (reply.kept_records, reply.floor_seq) == (4, 6)
        reply = trim(storage, session, 2)
        assert (reply.kept_records, reply.floor_seq) == (2, 8)

    def test_a_trim_reaches_into_inherited_history(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(5))
        fork(storage, session)
        append(storage, "child", user("own"))
        reply = trim(storage, "child", 3)
        assert (reply.kept_records, reply.floor_seq) == (3, 3)
        assert texts(storage, "child") == ["r4", "r5", "own"]
        assert texts(storage, session) == ["r1", "r2", "r3", "r4", "r5"]

    def test_a_fork_keeps_what_its_source_trims(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(5))
        fork(storage, session)
        trim(storage, session, 1)
        assert texts(storage, session) == ["r5"]
        assert texts(storage, "child") == ["r1", "r2", "r3", "r4", "r5"]

    def test_a_stale_head_is_aborted_and_nothing_trimmed(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(3))
        with stale_head() as refusal:
            storage.TrimRecords(pb.TrimRecordsRequest(session_id=session, keep_last=0, expected_head_seq=2))
        assert refusal.metadata["head_seq"] == "3"
        assert len(texts(storage, session)) == 3
        storage.TrimRecords(pb.TrimRecordsRequest(session_id=session, keep_last=0, expected_head_seq=3))
        assert texts(storage, session) == []

    def test_a_negative_count_is_refused(self, storage: SessionStorageStub, session: str) -> None:
        with bad_field("keep_last"):
            trim(storage, session, -1)

    def test_an_archived_or_unknown_session_is_refused(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(3))
        archive(storage, session)
        with archived():
            trim(storage, session, 1)
        with unknown_session():
            trim(storage, "nobody", 1)
        assert len(texts(storage, session)) == 3

    def test_a_trim_beside_appends_loses_none_of_them(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(20, "old"))
        with ThreadPoolExecutor(5) as pool:
            writes = [pool.submit(append, storage, session, user(f"new{number}")) for number in range(12)]
            trims = [pool.submit(trim, storage, session, 20) for _ in range(4)]
            for write in writes:
                write.result()
            for cut in trims:
                cut.result()
        kept = texts(storage, session)
        assert sorted(kept[-12:]) == sorted(f"new{number}" for number in range(12))
        assert get(storage, session).head_seq == 32
