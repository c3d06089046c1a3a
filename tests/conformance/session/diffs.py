"""Diffs: how far two histories are the very same records."""

from __future__ import annotations

from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from tests.conformance.refusing import unknown_session
from tests.conformance.session.making import append, archive, calling, fork, put, rewind, trim, user, users


def diff(storage: SessionStorageStub, left: str, right: str) -> tuple[int, pb.DiffSide, pb.DiffSide]:
    """Compare, either way round, which must tell the same."""
    there = storage.DiffSessions(pb.DiffSessionsRequest(left_session_id=left, right_session_id=right))
    back = storage.DiffSessions(pb.DiffSessionsRequest(left_session_id=right, right_session_id=left))
    assert (there.common_through_seq, there.left, there.right) == (back.common_through_seq, back.right, back.left)
    return there.common_through_seq, there.left, there.right


def side(first_own: int, head: int, floor: int = 0) -> pb.DiffSide:
    """One side of a diff."""
    return pb.DiffSide(first_own_seq=first_own, head_seq=head, floor_seq=floor)


class TestDiffs:
    def test_a_fork_and_its_source_share_what_was_inherited(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(3))
        fork(storage, session)
        assert diff(storage, session, "child") == (3, side(0, 3), side(0, 3))
        append(storage, "child", *users(2))
        assert diff(storage, session, "child") == (3, side(0, 3), side(4, 5))
        append(storage, session, user())
        assert diff(storage, session, "child") == (3, side(4, 4), side(4, 5))

    def test_the_same_text_is_not_the_same_record(self, storage: SessionStorageStub) -> None:
        for session_id in ("a", "b"):
            put(storage, session_id)
            append(storage, session_id, *users(2))
        assert diff(storage, "a", "b") == (0, side(1, 2), side(1, 2))

    def test_siblings_share_up_to_where_they_were_forked(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(4))
        fork(storage, session, "a", up_to_seq=2)
        fork(storage, session, "b", up_to_seq=3)
        append(storage, "a", user())
        append(storage, "b", user())
        assert diff(storage, "a", "b") == (2, side(3, 3), side(3, 4))

    def test_a_session_and_itself(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(3))
        assert diff(storage, session, session) == (3, side(0, 3), side(0, 3))

    def test_empty_sessions_share_nothing(self, storage: SessionStorageStub, session: str) -> None:
        put(storage, "other")
        assert diff(storage, session, "other") == (0, side(0, 0), side(0, 0))

    def test_what_is_below_the_higher_floor_is_not_compared(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(5))
        fork(storage, session)
        trim(storage, "child", 2)
        assert diff(storage, session, "child") == (5, side(0, 5), side(0, 5, 3))
        append(storage, "child", user())
        assert diff(storage, session, "child") == (5, side(0, 5), side(6, 6, 3))

    def test_nothing_shared_above_the_floors(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(3))
        fork(storage, session)
        append(storage, "child", *users(2))
        trim(storage, "child", 1)
        common, left, right = diff(storage, session, "child")
        assert common == 0
        assert (left.floor_seq, right.floor_seq) == (0, 4)
        assert right.first_own_seq == 5

    def test_a_rewind_moves_the_point_where_they_part(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(4))
        fork(storage, session)
        rewind(storage, "child", 2)
        append(storage, "child", user())
        assert diff(storage, session, "child") == (2, side(3, 4), side(6, 6))

    def test_a_record_that_was_left_out_parts_them(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, user("1"), calling("a"), user("2"), user("3"))
        fork(storage, session)
        common, left, right = diff(storage, session, "child")
        assert common == 1
        assert left.first_own_seq == 2
        assert right.first_own_seq in {0, 3}

    def test_archived_sessions_are_compared_and_unknown_ones_not_found(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        append(storage, session, user())
        fork(storage, session)
        archive(storage, session)
        assert diff(storage, session, "child") == (1, side(0, 1), side(0, 1))
        for left, right in [("nobody", session), (session, "nobody")]:
            with unknown_session():
                storage.DiffSessions(pb.DiffSessionsRequest(left_session_id=left, right_session_id=right))
