"""Lists of sessions: their order, their filters and their pages."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest

from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from tests.conformance.refusing import bad_field, bad_page_token, refused
from tests.conformance.session.making import append, archive, delete, get, put, user

ORDERS = [pb.SESSION_ORDER_ID, pb.SESSION_ORDER_CREATED_AT, pb.SESSION_ORDER_LAST_ACTIVE_AT]


def listed(storage: SessionStorageStub, request: pb.ListSessionsRequest | None = None) -> list[str]:
    """The ids of a whole list, through all its pages."""
    return [session.id for page in session_pages(storage, request) for session in page.sessions]


def session_pages(
    storage: SessionStorageStub, request: pb.ListSessionsRequest | None = None
) -> Iterator[pb.ListSessionsResponse]:
    """Every page of a list of sessions."""
    wanted = pb.ListSessionsRequest()
    if request is not None:
        wanted.CopyFrom(request)
    while True:
        page = storage.ListSessions(wanted)
        yield page
        if not page.next_page_token:
            return
        wanted.page_token = page.next_page_token


def by(**conditions: object) -> pb.ListSessionsRequest:
    """A request with a filter."""
    return pb.ListSessionsRequest(filter=pb.SessionFilter(**conditions))  # type: ignore[arg-type]  # one condition each


class TestListOrder:
    def test_by_id_byte_for_byte(self, storage: SessionStorageStub) -> None:
        ids = ["b", "A", "a", "B", "a b", "~", "!", "a.b", "_"]
        for session_id in ids:
            put(storage, session_id)
        assert listed(storage) == sorted(ids)
        assert listed(storage, pb.ListSessionsRequest(descending=True)) == sorted(ids, reverse=True)

    def test_by_creation(self, storage: SessionStorageStub) -> None:
        for session_id in ("c", "a", "b"):
            put(storage, session_id)
        request = pb.ListSessionsRequest(order=pb.SESSION_ORDER_CREATED_AT)
        assert listed(storage, request) == ["c", "a", "b"]
        request.descending = True
        assert listed(storage, request) == ["b", "a", "c"]

    def test_by_last_activity(self, storage: SessionStorageStub) -> None:
        for session_id in ("a", "b", "c"):
            put(storage, session_id)
        append(storage, "a", user())
        request = pb.ListSessionsRequest(order=pb.SESSION_ORDER_LAST_ACTIVE_AT)
        assert listed(storage, request) == ["b", "c", "a"]
        request.descending = True
        assert listed(storage, request) == ["a", "c", "b"]

    @pytest.mark.parametrize("descending", [False, True])
    @pytest.mark.parametrize("order", ORDERS)
    def test_pages_are_the_whole_list_cut(
        self, storage: SessionStorageStub, order: pb.SessionOrder.ValueType, descending: bool
    ) -> None:
        for number in range(11):
            put(storage, f"s{number * 7 % 11:02}")
        request = pb.ListSessionsRequest(order=order, descending=descending)
        whole = listed(storage, request)
        assert len(whole) == 11
        request.page_size = 3
        assert listed(storage, request) == whole
        assert all(len(page.sessions) <= 3 for page in session_pages(storage, request))

    def test_an_unknown_order_is_refused(self, storage: SessionStorageStub) -> None:
        with bad_field("order"):
            storage.ListSessions(pb.ListSessionsRequest(order=77))  # type: ignore[arg-type]  # what an older server would see


class TestListFilters:
    def test_without_a_filter_all_are_listed(self, storage: SessionStorageStub) -> None:
        put(storage, "a")
        put(storage, "b")
        archive(storage, "b")
        assert listed(storage) == ["a", "b"]

    def test_by_status(self, storage: SessionStorageStub) -> None:
        put(storage, "a")
        put(storage, "b")
        archive(storage, "b")
        assert listed(storage, by(status=pb.SESSION_STATUS_ACTIVE)) == ["a"]
        assert listed(storage, by(status=pb.SESSION_STATUS_ARCHIVED)) == ["b"]
        assert listed(storage, by(status=pb.SESSION_STATUS_UNSPECIFIED)) == ["a", "b"]

    def test_by_all_of_some_tags(self, storage: SessionStorageStub) -> None:
        put(storage, "a", tags=["x"])
        put(storage, "b", tags=["x", "y"])
        put(storage, "c", tags=["y", "X"])
        assert listed(storage, by(tags=["x"])) == ["a", "b"]
        assert listed(storage, by(tags=["y", "x"])) == ["b"]
        assert listed(storage, by(tags=["X"])) == ["c"]
        assert listed(storage, by(tags=["z"])) == []

    @pytest.mark.parametrize("order", ORDERS)
    def test_tags_hold_in_every_order(self, storage: SessionStorageStub, order: pb.SessionOrder.ValueType) -> None:
        for number in range(9):
            put(storage, f"s{number}", tags=["odd"] if number % 2 else ["even"])
        request = by(tags=["odd"])
        request.order = order
        request.page_size = 2
        assert listed(storage, request) == ["s1", "s3", "s5", "s7"]

    @pytest.mark.parametrize("prefix", ["a", "A", "a%", "a_", "a\\", "é", "e", "计", "a ", "😀"])
    def test_a_label_prefix_is_compared_exactly(self, storage: SessionStorageStub, prefix: str) -> None:
        labels = ["a", "A", "a%b", "axb", "a_b", "a\\b", "élan", "elan", "计划", "a b", "😀!", "ab", "Ab", ""]
        for number, label in enumerate(labels):
            put(storage, f"s{number:02}", label=label)
        expected = [f"s{number:02}" for number, label in enumerate(labels) if label.startswith(prefix)]
        assert listed(storage, by(label_prefix=prefix)) == expected

    def test_times_are_from_and_before(self, storage: SessionStorageStub) -> None:
        first, second, third = (put(storage, session_id) for session_id in ("a", "b", "c"))
        assert listed(storage, by(created_from=second.created_at)) == ["b", "c"]
        assert listed(storage, by(created_before=second.created_at)) == ["a"]
        assert listed(storage, by(created_from=first.created_at, created_before=third.created_at)) == ["a", "b"]

    @pytest.mark.parametrize("order", ORDERS)
    def test_activity_is_filtered_in_every_order(
        self, storage: SessionStorageStub, order: pb.SessionOrder.ValueType
    ) -> None:
        for session_id in ("a", "b", "c"):
            put(storage, session_id)
        append(storage, "a", user())
        active = get(storage, "a").last_active_at
        request = by(last_active_from=active)
        request.order = order
        assert listed(storage, request) == ["a"]
        request = by(last_active_before=active)
        request.order = order
        assert listed(storage, request) == ["b", "c"]

    def test_all_conditions_must_hold(self, storage: SessionStorageStub) -> None:
        put(storage, "a", label="plan a", tags=["x"])
        put(storage, "b", label="plan b", tags=["x"])
        put(storage, "c", label="other", tags=["x"])
        archive(storage, "b")
        wanted = by(label_prefix="plan", tags=["x"], status=pb.SESSION_STATUS_ACTIVE)
        assert listed(storage, wanted) == ["a"]

    @pytest.mark.parametrize("value", ["x') OR 1=1 --", "x' OR '1'='1", 'x"; DROP TABLE session; --', "%", "_"])
    def test_a_filter_value_is_only_a_value(self, storage: SessionStorageStub, value: str) -> None:
        """langgraph#5666: a filter value such as `x') OR 1=1 --` has no effect on the query."""
        put(storage, "a", label="x", tags=["x"])
        assert listed(storage, by(label_prefix=value)) == []
        assert listed(storage, by(tags=[value])) == []
        put(storage, "b", label=value, tags=[value])
        assert listed(storage, by(label_prefix=value)) == ["b"]
        assert listed(storage, by(tags=[value])) == ["b"]

    def test_an_unknown_filter_field_is_refused(self, storage: SessionStorageStub) -> None:
        """langgraph#5666: a condition that the server does not know must not be answered with everything."""
        put(storage, "a")
        unknown = pb.SessionFilter.FromString(b"\xf2\x07\x01x")  # field 126, of a later contract
        with refused(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD", names="filter"):
            storage.ListSessions(pb.ListSessionsRequest(filter=unknown))

    def test_an_unknown_status_is_refused(self, storage: SessionStorageStub) -> None:
        with bad_field("status"):
            storage.ListSessions(by(status=77))

    def test_a_deleted_session_and_its_tags_leave_the_list(self, storage: SessionStorageStub) -> None:
        put(storage, "a", tags=["x"])
        put(storage, "b", tags=["x"])
        delete(storage, "a")
        put(storage, "a")
        assert listed(storage, by(tags=["x"])) == ["b"]


class TestListPages:
    def test_a_page_holds_a_hundred_by_default(self, storage: SessionStorageStub) -> None:
        for number in range(101):
            put(storage, f"s{number:03}")
        page = storage.ListSessions(pb.ListSessionsRequest())
        assert len(page.sessions) == 100
        assert page.next_page_token
        assert len(storage.ListSessions(pb.ListSessionsRequest(page_size=100_000)).sessions) == 101

    def test_the_last_page_has_no_token(self, storage: SessionStorageStub) -> None:
        put(storage, "a")
        assert storage.ListSessions(pb.ListSessionsRequest()).next_page_token == ""
        assert listed(storage, pb.ListSessionsRequest(page_size=1)) == ["a"]

    def test_a_list_of_an_empty_space_is_empty(self, storage: SessionStorageStub) -> None:
        assert storage.ListSessions(pb.ListSessionsRequest()) == pb.ListSessionsResponse()

    def test_a_negative_page_size_is_refused(self, storage: SessionStorageStub) -> None:
        with bad_field("page_size"):
            storage.ListSessions(pb.ListSessionsRequest(page_size=-1))

    @pytest.mark.parametrize(
        "other",
        [
            pb.ListSessionsRequest(order=pb.SESSION_ORDER_CREATED_AT),
            pb.ListSessionsRequest(descending=True),
            by(label_prefix="s"),
            by(tags=["x"]),
        ],
    )
    def test_a_token_of_another_list_is_refused(
        self, storage: SessionStorageStub, other: pb.ListSessionsRequest
    ) -> None:
        for session_id in ("a", "b"):
            put(storage, session_id)
        token = storage.ListSessions(pb.ListSessionsRequest(page_size=1)).next_page_token
        wanted = pb.ListSessionsRequest()
        wanted.CopyFrom(other)
        wanted.page_token = token
        with bad_page_token():
            storage.ListSessions(wanted)

    @pytest.mark.parametrize("token", ["x", "!!!", "e30", "W10", "null", "0" * 5000, "é"])
    def test_a_damaged_token_is_refused(self, storage: SessionStorageStub, token: str) -> None:
        with bad_page_token():
            storage.ListSessions(pb.ListSessionsRequest(page_token=token))

    def test_a_page_size_may_change_from_page_to_page(self, storage: SessionStorageStub) -> None:
        for session_id in ("a", "b", "c"):
            put(storage, session_id)
        token = storage.ListSessions(pb.ListSessionsRequest(page_size=1)).next_page_token
        rest = storage.ListSessions(pb.ListSessionsRequest(page_size=10, page_token=token))
        assert [session.id for session in rest.sessions] == ["b", "c"]

    def test_a_token_survives_the_session_it_stands_at(self, storage: SessionStorageStub) -> None:
        for session_id in ("a", "b", "c"):
            put(storage, session_id)
        token = storage.ListSessions(pb.ListSessionsRequest(page_size=1)).next_page_token
        delete(storage, "a")
        rest = storage.ListSessions(pb.ListSessionsRequest(page_token=token))
        assert [session.id for session in rest.sessions] == ["b", "c"]

    def test_a_sparse_filter_finds_all_through_short_pages(self, storage: SessionStorageStub) -> None:
        for number in range(25):
            put(storage, f"s{number:02}", label="hit" if number in {3, 24} else "miss")
        request = by(label_prefix="hit")
        request.page_size = 1
        assert listed(storage, request) == ["s03", "s24"]
