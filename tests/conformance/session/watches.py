"""Watches of a session: from a position, then live, and nothing twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import grpc
import pytest

from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from tests.conformance.backends import Backend
from tests.conformance.calling import within
from tests.conformance.refusing import bad_field, refused, unknown_session
from tests.conformance.session.making import append, archive, delete, fork, put, rewind, seqs, trim, user, users
from tests.conformance.watching import Watch, watching

RecordWatch = Watch[pb.WatchRecordsResponse]

LARGE = "x" * 100_000


def watched(storage: SessionStorageStub, session_id: str, after: int | None = 0) -> AbstractContextManager[RecordWatch]:
    """A watch of a session after a seq; None: from now on."""
    return watching(storage.WatchRecords(pb.WatchRecordsRequest(session_id=session_id, after_seq=after)))


def taken(messages: list[pb.WatchRecordsResponse]) -> list[str]:
    """The contents of all records of messages."""
    return [record.content for message in messages for record in message.records]


def read_through(watch: RecordWatch, seq: int) -> list[str]:
    """The contents of all records up to a seq."""
    return taken(watch.read_until(lambda message: message.through_seq >= seq))


@contextmanager
def out_of_range(reason: str, key: str, value: int) -> Iterator[None]:
    """Expect that a position is refused with what is in the way."""
    with refused(grpc.StatusCode.OUT_OF_RANGE, reason) as refusal:
        yield
    assert refusal.metadata == {key: str(value)}


class TestWatching:
    def test_the_first_message_comes_at_once_and_tells_the_position(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        with watched(storage, session) as watch:
            first = watch.read()
            assert (list(first.records), first.through_seq, first.HasField("rewound_to_seq")) == ([], 0, False)

    def test_what_was_there_comes_first_and_then_each_append(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(3))
        with watched(storage, session) as watch:
            first = watch.read()
            assert (taken([first]), first.through_seq) == (["r1", "r2", "r3"], 3)
            for number in range(4, 8):
                stored = append(storage, session, user(f"r{number}"))
                live = watch.read()
                assert (taken([live]), live.through_seq) == ([f"r{number}"], stored.seqs[0])

    def test_a_record_is_told_as_it_is_listed(self, storage: SessionStorageStub, session: str) -> None:
        with watched(storage, session) as watch:
            watch.read()
            call = pb.ToolCall(id="c", name="look_up", arguments_json='{"b": 1, "a": 2512292042121000001}')
            append(
                storage, session, pb.Record(role=pb.ROLE_ASSISTANT, content="你好 👋", tool_calls=[call], name="model")
            )
            listed = storage.ListRecords(pb.ListRecordsRequest(session_id=session)).records
            assert list(watch.read().records) == list(listed)

    def test_without_a_seq_only_what_comes_is_told(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(3))
        with watched(storage, session, None) as watch:
            first = watch.read()
            assert (list(first.records), first.through_seq) == ([], 3)
            append(storage, session, user("new"))
            assert taken([watch.read()]) == ["new"]

    def test_from_any_seq_it_goes_on_behind_that(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(5))
        for after in range(6):
            with watched(storage, session, after) as watch:
                assert read_through(watch, 5) == [f"r{number}" for number in range(after + 1, 6)]

    def test_a_message_is_bounded_and_a_long_history_comes_whole(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        append(storage, session, *users(700))
        with watched(storage, session) as watch:
            messages = watch.read_until(lambda message: message.through_seq == 700)
        assert taken(messages) == [f"r{number}" for number in range(1, 701)]
        assert max(len(message.records) for message in messages) == 256
        assert [message.through_seq for message in messages] == [message.records[-1].seq for message in messages]

    def test_large_records_come_few_at_a_time(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *(user(LARGE) for _ in range(6)), user(LARGE * 5), user("last"))
        with watched(storage, session) as watch:
            messages = watch.read_until(lambda message: message.through_seq == 8)
        assert [len(message.records) for message in messages] == [2, 2, 2, 1, 1]

    def test_an_archived_session_is_watched_and_goes_on_when_restored(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        append(storage, session, user())
        archive(storage, session)
        with watched(storage, session) as watch:
            assert watch.read().through_seq == 1
            storage.RestoreSession(pb.RestoreSessionRequest(session_id=session))
            append(storage, session, user("again"))
            assert taken([watch.read()]) == ["again"]

    def test_an_erased_record_is_told_blank(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(2))
        storage.EraseRecord(pb.EraseRecordRequest(session_id=session, seq=1))
        with watched(storage, session) as watch:
            (gone, stays) = watch.read().records
            assert (gone.seq, gone.content, gone.HasField("erased_at"), stays.content) == (1, "", True, "r2")


class TestWatchingAFork:
    def test_inherited_records_come_first(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(4))
        fork(storage, session, up_to_seq=3)
        append(storage, "child", user("own"))
        with watched(storage, "child") as watch:
            assert read_through(watch, 4) == ["r1", "r2", "r3", "own"]
            append(storage, session, user("of the source"))
            append(storage, "child", user("more"))
            assert taken([watch.read()]) == ["more"]

    def test_what_it_did_not_inherit_lies_below_its_floor(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(5))
        fork(storage, session, last=2)
        with out_of_range("BELOW_TRIM_FLOOR", "floor_seq", 3), watched(storage, "child") as watch:
            watch.read()
        with watched(storage, "child", 3) as watch:
            assert read_through(watch, 5) == ["r4", "r5"]

    def test_its_source_may_be_deleted_under_it(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(2))
        fork(storage, session)
        with watched(storage, "child") as watch:
            assert read_through(watch, 2) == ["r1", "r2"]
            delete(storage, session)
            append(storage, "child", user("on"))
            assert taken([watch.read()]) == ["on"]


class TestRewindsUnderAWatch:
    def test_a_rewind_is_told_before_what_follows(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(5))
        with watched(storage, session) as watch:
            read_through(watch, 5)
            head = rewind(storage, session, 3).head_seq
            told = watch.read()
            assert (told.rewound_to_seq, told.through_seq, list(told.records)) == (3, head, [])
            for _ in range(2):
                append(storage, session, user("other"))
                told = watch.read()
                assert (taken([told]), told.HasField("rewound_to_seq")) == (["other"], False)
                rewind(storage, session, 3)
                assert watch.read().rewound_to_seq == 3
            rewind(storage, session, 0)
            assert watch.read().rewound_to_seq == 0

    def test_whoever_resumes_learns_of_a_rewind_and_what_it_took(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        append(storage, session, *users(5))
        rewind(storage, session, 2)
        append(storage, session, user("other"))
        with watched(storage, session, 5) as watch:
            told = watch.read()
            assert (told.rewound_to_seq, taken([told])) == (2, ["other"])
        with watched(storage, session, 2) as watch:
            told = watch.read()
            assert (told.HasField("rewound_to_seq"), taken([told])) == (False, ["other"])

    def test_a_rewind_that_takes_nothing_moves_the_position_on(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(2))
        with watched(storage, session) as watch:
            read_through(watch, 2)
            rewind(storage, session, 2)
            told = watch.read()
            assert (told.through_seq, told.HasField("rewound_to_seq")) == (3, False)

    def test_a_watch_from_now_on_hears_of_no_rewind_before(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(3))
        rewind(storage, session, 1)
        with watched(storage, session, None) as watch:
            assert not watch.read().HasField("rewound_to_seq")

    def test_a_mirror_that_is_cut_anywhere_shows_what_the_session_shows(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        mirror: dict[int, str] = {}
        through = 0
        for number in range(12):
            append(storage, session, *users(3, f"t{number}-"))
            if number % 3 == 2:
                rewind(storage, session, seqs(storage, session)[-number // 2])
            if number % 4 == 1:
                continue
            head = storage.GetSession(pb.GetSessionRequest(session_id=session)).head_seq
            with watched(storage, session, through) as watch:
                for message in watch.read_until(lambda message, head=head: message.through_seq == head):  # type: ignore[misc]
                    if message.HasField("rewound_to_seq"):
                        mirror = {seq: text for seq, text in mirror.items() if seq <= message.rewound_to_seq}
                    assert not mirror.keys() & {record.seq for record in message.records}, "told twice"
                    mirror |= {record.seq: record.content for record in message.records}
                    through = message.through_seq
            assert sorted(mirror) == seqs(storage, session)


class TestWhereAWatchCannotBe:
    def test_a_position_outside_the_history_is_out_of_range(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(5))
        trim(storage, session, 2)
        with out_of_range("BELOW_TRIM_FLOOR", "floor_seq", 3), watched(storage, session, 2) as watch:
            watch.read()
        with out_of_range("ABOVE_HEAD", "head_seq", 5), watched(storage, session, 6) as watch:
            watch.read()
        for after in (3, 5):
            with watched(storage, session, after) as watch:
                assert watch.read().through_seq == 5

    def test_a_trim_that_overtakes_a_reader_ends_its_watch_with_the_floor(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        for _ in range(8):
            append(storage, session, *(user(LARGE) for _ in range(40)))
        with watched(storage, session) as watch:
            through = watch.read().through_seq
            trim(storage, session, 1)
            end = watch.end()
        assert through < 320
        assert (end.code, end.reason) == (grpc.StatusCode.OUT_OF_RANGE, "BELOW_TRIM_FLOOR")
        assert end.metadata == {"floor_seq": "319"}

    def test_a_trim_of_what_was_read_ends_nothing(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(3))
        with watched(storage, session) as watch:
            read_through(watch, 3)
            trim(storage, session, 0)
            append(storage, session, user("new"))
            assert taken([watch.read()]) == ["new"]

    def test_an_unknown_session_is_not_found(self, storage: SessionStorageStub, session: str) -> None:
        with unknown_session(), watched(storage, "nobody") as watch:
            watch.read()
        with bad_field("after_seq"), watched(storage, session, -1) as watch:
            watch.read()
        with bad_field("session_id"), watched(storage, "") as watch:
            watch.read()

    @pytest.mark.parametrize("again", [False, True])
    def test_a_deleted_session_ends_its_watch_also_where_its_id_is_used_again(
        self, storage: SessionStorageStub, session: str, again: bool
    ) -> None:
        append(storage, session, *users(2))
        with watched(storage, session) as watch:
            read_through(watch, 2)
            delete(storage, session)
            if again:
                put(storage, session)
                append(storage, session, *users(9, "of another life"))
            end = watch.end()
        assert (end.code, end.reason) == (grpc.StatusCode.NOT_FOUND, "SESSION_NOT_FOUND")

    def test_a_session_of_another_space_is_not_found(
        self, storage: SessionStorageStub, backend: Backend, space: str
    ) -> None:
        put(storage, "here")
        elsewhere = SessionStorageStub(within(backend.channel, f"{space}-other"))
        with unknown_session(), watched(elsewhere, "here") as watch:
            watch.read()
