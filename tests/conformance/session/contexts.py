"""Contexts: what one send needs, in one call. (Tool-call groups are told in tool_groups.)"""

from __future__ import annotations

import pytest

from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from tests.conformance.refusing import bad_field, unknown_session
from tests.conformance.session.making import (
    answering,
    append,
    archive,
    calling,
    context,
    fork,
    get,
    history,
    put_insight,
    put_memory,
    put_system_prompt,
    trim,
    user,
    users,
)


class TestContexts:
    def test_it_holds_the_session_its_prompt_its_insight_and_its_history(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        prompt = put_system_prompt(storage, session, "prompt")
        insight = put_insight(storage, session, "insight")
        append(storage, session, *users(3))
        found = context(storage, session)
        assert found.session == get(storage, session)
        assert (found.system_prompt, found.insight) == (prompt, insight)
        assert list(found.records) == history(storage, session)
        assert not found.older_left_out
        assert found.incomplete_records == 0

    def test_memory_never_enters_it(self, storage: SessionStorageStub, session: str) -> None:
        put_memory(storage, session, "what others see")
        append(storage, session, user())
        assert b"what others see" not in context(storage, session).SerializeToString()

    def test_an_empty_session_has_an_empty_context(self, storage: SessionStorageStub, session: str) -> None:
        found = context(storage, session)
        assert list(found.records) == []
        assert not found.older_left_out
        assert (found.system_prompt, found.insight) == (pb.Slot(), pb.Slot())

    def test_reading_it_consumes_nothing(self, storage: SessionStorageStub, session: str) -> None:
        put_insight(storage, session, "once")
        assert context(storage, session) == context(storage, session)

    def test_an_archived_session_has_one(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, user("kept"))
        archive(storage, session)
        assert [record.content for record in context(storage, session).records] == ["kept"]

    def test_an_unknown_session_is_not_found(self, storage: SessionStorageStub) -> None:
        with unknown_session():
            context(storage, "nobody")


class TestBudgets:
    @pytest.mark.parametrize("most", [0, 1, 3, 5, 6])
    def test_the_most_recent_records_come(self, storage: SessionStorageStub, session: str, most: int) -> None:
        append(storage, session, *users(5))
        found = context(storage, session, max_records=most)
        assert [record.content for record in found.records] == ["r1", "r2", "r3", "r4", "r5"][max(0, 5 - most) :]
        assert found.older_left_out == (most < 5)

    def test_trimmed_records_are_not_left_out_but_gone(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(5))
        trim(storage, session, 2)
        found = context(storage, session)
        assert len(found.records) == 2
        assert not found.older_left_out

    @pytest.mark.parametrize(("most", "expected"), [(0, 0), (9, 0), (10, 1), (19, 1), (20, 2), (30, 3), (31, 3)])
    def test_characters_are_code_points_of_content(
        self, storage: SessionStorageStub, session: str, most: int, expected: int
    ) -> None:
        append(storage, session, *[user("计划👋🏽" + "x" * 6) for _ in range(3)])
        found = context(storage, session, max_characters=most)
        assert len(found.records) == expected
        assert found.older_left_out == (expected < 3)

    def test_parts_names_and_arguments_of_calls_count_too(self, storage: SessionStorageStub, session: str) -> None:
        parts = pb.Record(role=pb.ROLE_USER, content="12345", parts_json='"67890123"')  # 5 and 10
        call = calling("a", arguments_json='{"k":"v"}')  # "call a", "look_up", 9: 6 and 7 and 9
        answer = answering("a")  # "result a": 8
        append(storage, session, parts, call, answer)
        assert len(context(storage, session, max_characters=5 + 10 + 22 + 8).records) == 3
        assert len(context(storage, session, max_characters=5 + 10 + 22 + 7).records) == 2
        assert len(context(storage, session, max_characters=29).records) == 0
        assert len(context(storage, session, max_characters=30).records) == 2

    def test_both_budgets_hold(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *[user("x" * 10) for _ in range(5)])
        assert len(context(storage, session, max_records=2, max_characters=1000).records) == 2
        assert len(context(storage, session, max_records=4, max_characters=30).records) == 3

    def test_a_record_larger_than_the_budget_ends_it(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, user("x"), user("x" * 100), user("x"))
        found = context(storage, session, max_characters=50)
        assert len(found.records) == 1
        assert found.older_left_out

    def test_it_never_holds_more_than_sixteen_mebibytes(self, storage: SessionStorageStub, session: str) -> None:
        limit = storage.GetServerInfo(pb.GetServerInfoRequest()).limits.max_record_bytes
        for number in range(5):
            append(storage, session, user(f"{number}" + "x" * (limit - 1)))
        found = context(storage, session)
        assert [record.content[0] for record in found.records] == ["1", "2", "3", "4"]
        assert found.older_left_out

    def test_more_than_ten_thousand_records_are_ten_thousand(self, storage: SessionStorageStub, session: str) -> None:
        for batch in range(10):
            append(storage, session, *users(1000, f"b{batch}-"))
        append(storage, session, user("newest"))
        found = context(storage, session, max_records=50_000)
        assert len(found.records) == 10_000
        assert found.older_left_out
        assert (found.records[0].content, found.records[-1].content) == ("b0-2", "newest")

    def test_the_budget_reaches_into_inherited_history(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(5))
        fork(storage, session)
        append(storage, "child", user("own"))
        found = context(storage, "child", max_records=3)
        assert [record.content for record in found.records] == ["r4", "r5", "own"]
        assert found.older_left_out

    def test_negative_budgets_are_refused(self, storage: SessionStorageStub, session: str) -> None:
        with bad_field("max_records"):
            context(storage, session, max_records=-1)
        with bad_field("max_characters"):
            context(storage, session, max_characters=-1)
