"""Spaces: every row belongs to one, and nothing crosses from one to another."""

from __future__ import annotations

import pytest

from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from tests.conformance.backends import Backend
from tests.conformance.calling import within
from tests.conformance.refusing import reason_of, too_large, unknown_session
from tests.conformance.session.making import (
    append,
    delete,
    fork,
    get,
    get_insight,
    put,
    put_insight,
    put_memory,
    texts,
    user,
    users,
)


class TestSpaces:
    @pytest.fixture
    def other(self, backend: Backend, space: str) -> SessionStorageStub:
        """The same service, within another space of the test's own."""
        return SessionStorageStub(within(backend.channel, f"{space}-other"))

    def test_the_same_id_in_two_spaces_is_two_sessions(
        self, storage: SessionStorageStub, other: SessionStorageStub
    ) -> None:
        """adk-python#1641: two spaces both use session `main`; no reads, counts or deletes across."""
        for here, name in ((storage, "one"), (other, "two")):
            put(here, "main", label=name, tags=[name], expected_version=0)
            append(here, "main", *users(2, name), turn_delta=1)
            put_insight(here, "main", name)
            put_memory(here, "main", name)
        for here, name in ((storage, "one"), (other, "two")):
            found = get(here, "main")
            assert (found.label, list(found.tags), found.head_seq, found.turn_count) == (name, [name], 2, 1)
            assert texts(here, "main") == [f"{name}1", f"{name}2"]
            assert get_insight(here, "main").content == name
            [part] = here.BatchGetSlots(pb.BatchGetSlotsRequest(session_ids=["main"]))
            assert part.sessions[0].memory.content == name
            listed = here.ListSessions(pb.ListSessionsRequest())
            assert list(listed.sessions) == [found]
            elsewhere = pb.SessionFilter(tags=[{"one": "two", "two": "one"}[name]])
            assert not here.ListSessions(pb.ListSessionsRequest(filter=elsewhere)).sessions
        delete(storage, "main")
        assert texts(other, "main") == ["two1", "two2"]
        with unknown_session():
            get(storage, "main")

    def test_a_session_of_another_space_is_unknown(
        self, storage: SessionStorageStub, other: SessionStorageStub
    ) -> None:
        put(storage, "main")
        append(storage, "main", user())
        put(other, "here")
        with unknown_session():
            get(other, "main")
        with unknown_session():
            append(other, "main", user())
        with unknown_session():
            fork(other, "main")
        with unknown_session():
            other.DiffSessions(pb.DiffSessionsRequest(left_session_id="here", right_session_id="main"))
        found = other.BatchGetSessions(pb.BatchGetSessionsRequest(session_ids=["main", "here"]))
        assert list(found.missing_session_ids) == ["main"]

    def test_a_request_id_belongs_to_its_space(self, storage: SessionStorageStub, other: SessionStorageStub) -> None:
        for here, name in ((storage, "one"), (other, "two")):
            put(here, "main")
            append(here, "main", user(name), request_id="turn-1")
        assert texts(storage, "main") == ["one"]
        assert texts(other, "main") == ["two"]

    def test_a_page_token_does_not_open_another_space(
        self, storage: SessionStorageStub, other: SessionStorageStub
    ) -> None:
        for here, prefix in ((storage, "a"), (other, "b")):
            for number in range(3):
                put(here, f"{prefix}{number}")
        token = storage.ListSessions(pb.ListSessionsRequest(page_size=1)).next_page_token
        seen: list[pb.Session] = []
        asked = pb.ListSessionsRequest(page_size=1, page_token=token)
        # Refusing the token is as good as showing only one's own.
        assert reason_of(lambda: seen.extend(other.ListSessions(asked).sessions)) in {None, "INVALID_PAGE_TOKEN"}
        assert all(session.id.startswith("b") for session in seen)

    def test_without_metadata_the_space_is_the_default_one(self, backend: Backend, space: str) -> None:
        absent = SessionStorageStub(within(backend.channel, None))
        default = SessionStorageStub(within(backend.channel, "default"))
        put(absent, space)
        assert get(default, space) == get(absent, space)
        delete(default, space)
        with unknown_session():
            get(absent, space)

    def test_spaces_are_compared_byte_for_byte(self, backend: Backend, space: str) -> None:
        lower, upper = (SessionStorageStub(within(backend.channel, name)) for name in (space, space.upper()))
        put(lower, "main")
        with unknown_session():
            get(upper, "main")

    def test_a_space_that_is_no_id_is_refused(self, backend: Backend) -> None:
        with too_large(128, names="ramet-space"):
            get(SessionStorageStub(within(backend.channel, "x" * 129)), "main")
