"""Lists of records: either way, by role, from a seq, page by page."""

from __future__ import annotations

import pytest

from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from tests.conformance.refusing import bad_field, bad_page_token, unknown_session
from tests.conformance.session.making import append, history, pages, put, rewind, trim, user, users

ROLES = [pb.ROLE_SYSTEM, pb.ROLE_USER, pb.ROLE_ASSISTANT, pb.ROLE_USER, pb.ROLE_ASSISTANT, pb.ROLE_USER]


def listed(storage: SessionStorageStub, request: pb.ListRecordsRequest) -> list[str]:
    """The content of a whole list, through all its pages."""
    return [record.content for page in pages(storage, request) for record in page.records]


class WithTenRecords:
    @pytest.fixture
    def ten(self, storage: SessionStorageStub, session: str) -> str:
        """A session with records r1 to r10, whose seqs are 1 to 10."""
        append(storage, session, *users(10))
        return session


class TestListingRecords(WithTenRecords):
    def test_oldest_first_by_default(self, storage: SessionStorageStub, ten: str) -> None:
        names = [f"r{number}" for number in range(1, 11)]
        assert listed(storage, pb.ListRecordsRequest(session_id=ten)) == names
        ascending = pb.ListRecordsRequest(session_id=ten, order=pb.RECORD_ORDER_ASCENDING)
        assert listed(storage, ascending) == names

    def test_newest_first_when_asked(self, storage: SessionStorageStub, ten: str) -> None:
        request = pb.ListRecordsRequest(session_id=ten, order=pb.RECORD_ORDER_DESCENDING)
        assert listed(storage, request) == [f"r{number}" for number in range(10, 0, -1)]

    @pytest.mark.parametrize("order", [pb.RECORD_ORDER_ASCENDING, pb.RECORD_ORDER_DESCENDING])
    @pytest.mark.parametrize("page_size", [1, 3, 10, 11])
    def test_pages_are_the_whole_list_cut(
        self, storage: SessionStorageStub, ten: str, order: pb.RecordOrder.ValueType, page_size: int
    ) -> None:
        request = pb.ListRecordsRequest(session_id=ten, order=order)
        whole = listed(storage, request)
        request.page_size = page_size
        cut = [[record.content for record in page.records] for page in pages(storage, request)]
        assert [name for page in cut for name in page] == whole
        assert all(len(page) == page_size for page in cut[:-1])

    def test_after_and_before_exclude_the_seq_itself(self, storage: SessionStorageStub, ten: str) -> None:
        assert listed(storage, pb.ListRecordsRequest(session_id=ten, after_seq=8)) == ["r9", "r10"]
        assert listed(storage, pb.ListRecordsRequest(session_id=ten, before_seq=3)) == ["r1", "r2"]
        assert listed(storage, pb.ListRecordsRequest(session_id=ten, after_seq=4, before_seq=7)) == ["r5", "r6"]
        assert listed(storage, pb.ListRecordsRequest(session_id=ten, after_seq=4, before_seq=5)) == []
        assert listed(storage, pb.ListRecordsRequest(session_id=ten, after_seq=10)) == []
        assert listed(storage, pb.ListRecordsRequest(session_id=ten, after_seq=0, before_seq=99)) == [
            f"r{number}" for number in range(1, 11)
        ]
        assert listed(storage, pb.ListRecordsRequest(session_id=ten, before_seq=1)) == []

    def test_the_last_n_is_one_descending_page(self, storage: SessionStorageStub, ten: str) -> None:
        request = pb.ListRecordsRequest(session_id=ten, order=pb.RECORD_ORDER_DESCENDING, page_size=3)
        assert [record.content for record in storage.ListRecords(request).records] == ["r10", "r9", "r8"]

    @pytest.mark.parametrize("page_size", [1, 100])
    def test_by_role(self, storage: SessionStorageStub, session: str, page_size: int) -> None:
        append(storage, session, *[pb.Record(role=role, content=f"r{at}") for at, role in enumerate(ROLES)])

        def of(*roles: pb.Role.ValueType) -> list[str]:
            return listed(storage, pb.ListRecordsRequest(session_id=session, roles=roles, page_size=page_size))

        assert of(pb.ROLE_USER) == ["r1", "r3", "r5"]
        assert of(pb.ROLE_SYSTEM, pb.ROLE_ASSISTANT) == ["r0", "r2", "r4"]
        assert of(pb.ROLE_USER, pb.ROLE_USER) == ["r1", "r3", "r5"]
        assert of(pb.ROLE_TOOL) == []

    def test_an_offset_skips_before_the_first_page_only(self, storage: SessionStorageStub, ten: str) -> None:
        request = pb.ListRecordsRequest(session_id=ten, offset=4, page_size=4)
        assert listed(storage, request) == [f"r{number}" for number in range(5, 11)]
        request.order = pb.RECORD_ORDER_DESCENDING
        assert listed(storage, request) == [f"r{number}" for number in range(6, 0, -1)]
        assert listed(storage, pb.ListRecordsRequest(session_id=ten, offset=10)) == []
        assert listed(storage, pb.ListRecordsRequest(session_id=ten, offset=1_000_000)) == []

    def test_an_offset_counts_records_of_the_roles_asked_for(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *[pb.Record(role=role, content=f"r{at}") for at, role in enumerate(ROLES)])
        request = pb.ListRecordsRequest(session_id=session, roles=[pb.ROLE_USER], offset=1)
        assert listed(storage, request) == ["r3", "r5"]

    def test_every_page_tells_head_and_floor(self, storage: SessionStorageStub, ten: str) -> None:
        trim(storage, ten, 4)
        for page in pages(storage, pb.ListRecordsRequest(session_id=ten, page_size=3)):
            assert (page.head_seq, page.floor_seq) == (10, 6)

    def test_an_empty_session_has_one_empty_page(self, storage: SessionStorageStub, session: str) -> None:
        assert storage.ListRecords(pb.ListRecordsRequest(session_id=session)) == pb.ListRecordsResponse()

    def test_an_unknown_session_is_not_found(self, storage: SessionStorageStub) -> None:
        with unknown_session():
            storage.ListRecords(pb.ListRecordsRequest(session_id="nobody"))

    def test_positions_below_the_floor_show_what_is_left(self, storage: SessionStorageStub, ten: str) -> None:
        trim(storage, ten, 2)
        assert listed(storage, pb.ListRecordsRequest(session_id=ten, after_seq=3)) == ["r9", "r10"]
        assert listed(storage, pb.ListRecordsRequest(session_id=ten, before_seq=8)) == []


class TestRecordPages(WithTenRecords):
    def test_a_page_holds_a_hundred_by_default_and_a_thousand_at_most(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        append(storage, session, *users(1000))
        append(storage, session, user())
        assert len(storage.ListRecords(pb.ListRecordsRequest(session_id=session)).records) == 100
        largest = storage.ListRecords(pb.ListRecordsRequest(session_id=session, page_size=5000))
        assert len(largest.records) == 1000
        assert largest.next_page_token

    def test_a_deep_history_is_never_cut_silently(self, storage: SessionStorageStub, session: str) -> None:
        """cloudflare/agents: what does not fit says so, and the rest can be read."""
        for batch in range(5):
            append(storage, session, *users(1000, f"b{batch}-"))
        names = [record.content for record in history(storage, session)]
        assert names == [f"b{batch}-{number}" for batch in range(5) for number in range(1, 1001)]
        found = storage.GetContext(pb.GetContextRequest(session_id=session, max_records=10))
        assert found.older_left_out
        whole = storage.GetContext(pb.GetContextRequest(session_id=session))
        assert len(whole.records) == 5000
        assert not whole.older_left_out

    @pytest.mark.parametrize("order", [pb.RECORD_ORDER_ASCENDING, pb.RECORD_ORDER_DESCENDING])
    def test_a_page_ends_at_the_bytes_of_a_page(
        self, storage: SessionStorageStub, session: str, order: pb.RecordOrder.ValueType
    ) -> None:
        limit = storage.GetServerInfo(pb.GetServerInfoRequest()).limits.max_page_bytes
        third = limit // 3 - 1000
        append(storage, session, *[user(f"{number}" + "x" * third) for number in range(4)])
        request = pb.ListRecordsRequest(session_id=session, order=order)
        sizes = [len(page.records) for page in pages(storage, request)]
        assert sizes == [3, 1]

    def test_a_record_as_large_as_a_page_comes_alone(self, storage: SessionStorageStub, session: str) -> None:
        limits = storage.GetServerInfo(pb.GetServerInfoRequest()).limits
        append(storage, session, user("small"), user("x" * limits.max_record_bytes), user("small"))
        sizes = [len(page.records) for page in pages(storage, pb.ListRecordsRequest(session_id=session))]
        assert sum(sizes) == 3
        assert max(sizes) < 3

    def test_a_page_size_may_change_from_page_to_page(self, storage: SessionStorageStub, ten: str) -> None:
        token = storage.ListRecords(pb.ListRecordsRequest(session_id=ten, page_size=2)).next_page_token
        rest = storage.ListRecords(pb.ListRecordsRequest(session_id=ten, page_size=50, page_token=token))
        assert [record.content for record in rest.records] == [f"r{number}" for number in range(3, 11)]

    def test_new_records_come_at_the_end_of_a_list_under_way(self, storage: SessionStorageStub, ten: str) -> None:
        request = pb.ListRecordsRequest(session_id=ten, page_size=4)
        first = storage.ListRecords(request)
        append(storage, ten, user("r11"))
        request.page_token = first.next_page_token
        rest = [record.content for page in pages(storage, request) for record in page.records]
        assert rest == [f"r{number}" for number in range(5, 12)]

    def test_a_list_under_way_goes_on_after_a_trim_and_a_rewind(self, storage: SessionStorageStub, ten: str) -> None:
        request = pb.ListRecordsRequest(session_id=ten, page_size=2)
        first = storage.ListRecords(request)
        trim(storage, ten, 5)
        rewind(storage, ten, 8)
        request.page_token = first.next_page_token
        assert [record.content for page in pages(storage, request) for record in page.records] == ["r6", "r7", "r8"]

    @pytest.mark.parametrize(
        "other",
        [
            pb.ListRecordsRequest(order=pb.RECORD_ORDER_DESCENDING),
            pb.ListRecordsRequest(roles=[pb.ROLE_USER]),
            pb.ListRecordsRequest(after_seq=1),
            pb.ListRecordsRequest(before_seq=9),
        ],
    )
    def test_a_token_of_another_list_is_refused(
        self, storage: SessionStorageStub, ten: str, other: pb.ListRecordsRequest
    ) -> None:
        wanted = pb.ListRecordsRequest(session_id=ten, page_size=2)
        token = storage.ListRecords(wanted).next_page_token
        wanted.MergeFrom(other)
        wanted.page_token = token
        with bad_page_token():
            storage.ListRecords(wanted)

    def test_a_token_of_another_session_is_refused(self, storage: SessionStorageStub, ten: str) -> None:
        other = put(storage, "other").id
        append(storage, other, *users(3))
        token = storage.ListRecords(pb.ListRecordsRequest(session_id=ten, page_size=2)).next_page_token
        with bad_page_token():
            storage.ListRecords(pb.ListRecordsRequest(session_id=other, page_size=2, page_token=token))

    @pytest.mark.parametrize(
        ("request_", "path"),
        [
            (pb.ListRecordsRequest(page_size=-1), "page_size"),
            (pb.ListRecordsRequest(offset=-1), "offset"),
            (pb.ListRecordsRequest(roles=[pb.ROLE_UNSPECIFIED]), "roles"),
            (pb.ListRecordsRequest(roles=[77]), "roles"),  # type: ignore[list-item]  # of a later contract
            (pb.ListRecordsRequest(order=77), "order"),  # type: ignore[arg-type]  # of a later contract
            (pb.ListRecordsRequest(after_seq=-1), "after_seq"),
            (pb.ListRecordsRequest(before_seq=-1), "before_seq"),
        ],
    )
    def test_a_bad_field_is_refused(
        self, storage: SessionStorageStub, ten: str, request_: pb.ListRecordsRequest, path: str
    ) -> None:
        wanted = pb.ListRecordsRequest(session_id=ten)
        wanted.MergeFrom(request_)
        try:
            with bad_field(path):
                storage.ListRecords(wanted)
        except AssertionError:
            # A repeated field may be named by its element.
            with bad_field(f"{path}[0]"):
                storage.ListRecords(wanted)

    def test_an_offset_beyond_a_million_is_refused(self, storage: SessionStorageStub, ten: str) -> None:
        with bad_field("offset"):
            storage.ListRecords(pb.ListRecordsRequest(session_id=ten, offset=1_000_001))
