"""Rewinds: every record after a seq is dropped, and no seq comes twice."""

from __future__ import annotations

import grpc

from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from tests.conformance.refusing import archived, bad_field, refused, stale_head, unknown_session
from tests.conformance.session.making import append, archive, fork, get, rewind, seqs, texts, trim, user, users


class TestRewinding:
    def test_everything_after_the_seq_is_dropped(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(5))
        reply = rewind(storage, session, 3)
        assert reply.head_seq == get(storage, session).head_seq == 6
        assert texts(storage, session) == ["r1", "r2", "r3"]

    def test_no_seq_is_used_again(self, storage: SessionStorageStub, session: str) -> None:
        given = set(append(storage, session, *users(5)).seqs)
        for after in (3, 1):
            head = rewind(storage, session, after).head_seq
            fresh = append(storage, session, user("fresh")).seqs[0]
            assert fresh > head > max(given)
            given.add(fresh)
        assert texts(storage, session) == ["r1", "fresh"]

    def test_a_writer_who_saw_the_dropped_records_meets_a_stale_head(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        seen = append(storage, session, *users(5)).session.head_seq
        head = rewind(storage, session, 4).head_seq
        with stale_head() as refusal:
            append(storage, session, user(), expected_head_seq=seen)
        assert refusal.metadata["head_seq"] == str(head)
        append(storage, session, user("new"), expected_head_seq=head)
        assert texts(storage, session) == ["r1", "r2", "r3", "r4", "new"]

    def test_a_rewind_to_nothing(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(2))
        rewind(storage, session, 0)
        assert texts(storage, session) == []
        append(storage, session, user("new"))
        assert texts(storage, session) == ["new"]

    def test_above_the_head_is_out_of_range(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(2))
        with refused(grpc.StatusCode.OUT_OF_RANGE, "ABOVE_HEAD") as refusal:
            rewind(storage, session, 3)
        assert refusal.metadata["head_seq"] == "2"
        assert len(texts(storage, session)) == 2

    def test_below_the_floor_is_out_of_range_and_the_floor_itself_is_not(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        append(storage, session, *users(5))
        trim(storage, session, 2)
        with refused(grpc.StatusCode.OUT_OF_RANGE, "BELOW_TRIM_FLOOR") as refusal:
            rewind(storage, session, 2)
        assert refusal.metadata["floor_seq"] == "3"
        rewind(storage, session, 3)
        assert texts(storage, session) == []

    def test_a_stale_head_is_aborted(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(3))
        with stale_head():
            storage.TruncateRecords(pb.TruncateRecordsRequest(session_id=session, after_seq=1, expected_head_seq=2))
        assert len(texts(storage, session)) == 3

    def test_a_rewind_reaches_into_inherited_history(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(5))
        fork(storage, session)
        append(storage, "child", user("own"))
        rewind(storage, "child", 2)
        append(storage, "child", user("other way"))
        assert texts(storage, "child") == ["r1", "r2", "other way"]
        assert texts(storage, session) == ["r1", "r2", "r3", "r4", "r5"]

    def test_a_fork_keeps_what_its_source_rewinds(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(3))
        fork(storage, session)
        rewind(storage, session, 1)
        append(storage, session, user("other way"))
        assert texts(storage, "child") == ["r1", "r2", "r3"]
        assert texts(storage, session) == ["r1", "other way"]

    def test_a_fork_of_a_rewound_session_inherits_what_it_shows(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        append(storage, session, *users(4))
        rewind(storage, session, 2)
        append(storage, session, user("new"))
        fork(storage, session)
        assert texts(storage, "child") == ["r1", "r2", "new"]
        assert seqs(storage, "child") == seqs(storage, session)

    def test_trims_and_rewinds_compose(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(10))
        rewind(storage, session, 6)
        append(storage, session, *users(2, "n"))
        assert trim(storage, session, 4).kept_records == 4
        assert texts(storage, session) == ["r5", "r6", "n1", "n2"]
        rewind(storage, session, 5)
        assert texts(storage, session) == ["r5"]
        rewind(storage, session, get(storage, session).head_seq)
        assert texts(storage, session) == ["r5"]

    def test_a_rewind_to_the_head_drops_nothing(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(2))
        rewind(storage, session, 2)
        append(storage, session, user("r3"))
        assert texts(storage, session) == ["r1", "r2", "r3"]

    def test_a_negative_seq_is_refused(self, storage: SessionStorageStub, session: str) -> None:
        with bad_field("after_seq"):
            rewind(storage, session, -1)

    def test_an_archived_or_unknown_session_is_refused(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(3))
        archive(storage, session)
        with archived():
            rewind(storage, session, 1)
        with unknown_session():
            rewind(storage, "nobody", 1)
        assert len(texts(storage, session)) == 3
