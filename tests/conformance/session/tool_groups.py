"""Tool-call groups: an assistant record with calls, and the records that answer it, stay together everywhere."""

from __future__ import annotations

import itertools

import pytest

from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from tests.conformance.session.making import (
    answering,
    append,
    assistant,
    calling,
    context,
    context_texts,
    delete,
    fork,
    history,
    put,
    rewind,
    texts,
    trim,
    user,
)

# Two calls, each with its own record, answered afterwards: the two groups interleave.
INTERLEAVED = [user("q1"), calling("a"), calling("b"), answering("a"), answering("b"), assistant("done"), user("q2")]
# One record that calls twice, and a second group right behind it.
ADJACENT = [user("q1"), calling("a", "b"), answering("b"), answering("a"), calling("c"), answering("c"), user("q2")]
# The same id is used again in a later group.
REPEATED = [calling("a"), answering("a"), user("q"), calling("a"), answering("a"), assistant("done")]
CONVERSATIONS = [INTERLEAVED, ADJACENT, REPEATED]
CUTS = [(conversation, keep) for conversation in CONVERSATIONS for keep in range(len(conversation) + 2)]


def orphans(records: list[pb.Record]) -> list[str]:
    """Records whose call or answer is missing, told by content: an independent reading of what a group is."""
    open_calls: list[tuple[str, str]] = []
    lost = []
    for record in records:
        if record.role == pb.ROLE_TOOL:
            match = next((call for call in open_calls if call[0] == record.tool_call_id), None)
            if match is None:
                lost.append(record.content)
            else:
                open_calls.remove(match)
        elif record.tool_calls:
            open_calls += [(call.id, record.content) for call in record.tool_calls]
        else:
            lost += [content for _, content in open_calls]
            open_calls = []
    return lost + [content for _, content in open_calls]


def clean_suffix(conversation: list[pb.Record], keep: int) -> list[str]:
    """The shortest end of the conversation with at least so many records in which no group is split."""
    for length in range(min(keep, len(conversation)), len(conversation) + 1):
        kept = conversation[len(conversation) - length :]
        if not orphans(kept):
            return [record.content for record in kept]
    raise AssertionError("the conversation itself is not whole")


def longest_clean_suffix(conversation: list[pb.Record], most: int) -> list[str]:
    """The longest end of the conversation with at most so many records in which no group is split."""
    for length in range(min(most, len(conversation)), -1, -1):
        kept = conversation[len(conversation) - length :]
        if not orphans(kept):
            return [record.content for record in kept]
    raise AssertionError("the empty end is always clean")


class TestWholeGroups:
    @pytest.fixture
    def talk(self, storage: SessionStorageStub, session: str, request: pytest.FixtureRequest) -> str:
        """A session that holds the conversation that the test is parametrized with."""
        append(storage, session, *request.param)
        return session

    @pytest.mark.parametrize(("talk", "keep"), CUTS, indirect=["talk"])
    def test_a_trim_at_every_n_leaves_no_orphan(
        self, storage: SessionStorageStub, talk: str, keep: int, request: pytest.FixtureRequest
    ) -> None:
        """openai-agents-python#4322: trim at every N over call, call, result, result."""
        conversation = request.node.callspec.params["talk"]
        reply = trim(storage, talk, keep)
        kept = history(storage, talk)
        assert orphans(kept) == []
        assert [record.content for record in kept] == clean_suffix(conversation, keep)
        assert reply.kept_records == len(kept)
        assert reply.floor_seq == len(conversation) - len(kept)

    @pytest.mark.parametrize(("talk", "keep"), CUTS, indirect=["talk"])
    def test_a_context_of_every_n_has_no_orphan(
        self, storage: SessionStorageStub, talk: str, keep: int, request: pytest.FixtureRequest
    ) -> None:
        """openai-agents-python#4322: the last N records of a context never begin inside a group."""
        conversation = request.node.callspec.params["talk"]
        found = context(storage, talk, max_records=keep)
        assert orphans(list(found.records)) == []
        whole = [record.content for record in found.records]
        seen = history(storage, talk)[-keep:] if keep else []
        assert [record for record in seen if record in found.records] == list(found.records)
        fitting = longest_clean_suffix(conversation, keep)
        assert whole[len(whole) - len(fitting) :] == fitting
        assert found.older_left_out == (len(found.records) < len(conversation))
        assert found.incomplete_records == 0

    @pytest.mark.parametrize(("talk", "keep"), CUTS, indirect=["talk"])
    def test_a_fork_of_the_last_n_has_no_orphan(
        self, storage: SessionStorageStub, talk: str, keep: int, request: pytest.FixtureRequest
    ) -> None:
        conversation = request.node.callspec.params["talk"]
        reply = fork(storage, talk, last=keep)
        kept = history(storage, "child")
        assert [record.content for record in kept] == clean_suffix(conversation, keep)
        assert reply.incomplete_records == 0

    @pytest.mark.parametrize(("talk", "keep"), CUTS, indirect=["talk"])
    def test_a_fork_up_to_every_seq_has_no_orphan(
        self, storage: SessionStorageStub, talk: str, keep: int, request: pytest.FixtureRequest
    ) -> None:
        conversation = request.node.callspec.params["talk"]
        up_to = min(keep, len(conversation))
        reply = fork(storage, talk, up_to_seq=up_to)
        inherited = history(storage, "child")
        assert orphans(inherited) == []
        assert reply.incomplete_records == up_to - len(inherited)
        assert texts(storage, talk) == [record.content for record in conversation]

    def test_a_group_that_comes_in_several_appends_is_one(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, user("q"), calling("a", "b"))
        append(storage, session, answering("a"))
        append(storage, session, answering("b"))
        append(storage, session, assistant("done"))
        assert trim(storage, session, 2).kept_records == 4
        assert len(context(storage, session).records) == 4


class TestIncompleteGroups:
    def test_a_call_without_an_answer_stays_in_the_history_but_not_in_a_context(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        append(storage, session, user("q"), calling("a", "b"), answering("a"), user("never mind"))
        assert texts(storage, session) == ["q", "call a b", "result a", "never mind"]
        found = context(storage, session)
        assert [record.content for record in found.records] == ["q", "never mind"]
        assert found.incomplete_records == 2
        assert not found.older_left_out

    def test_an_answer_without_a_call_is_taken_out(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, user("q"), answering("x"), assistant("a"))
        found = context(storage, session)
        assert [record.content for record in found.records] == ["q", "a"]
        assert found.incomplete_records == 1

    def test_an_answer_that_comes_after_the_conversation_went_on_answers_nothing(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        append(storage, session, calling("a"), user("on"), answering("a"))
        found = context(storage, session)
        assert [record.content for record in found.records] == ["on"]
        assert found.incomplete_records == 2

    def test_a_second_answer_to_one_call_is_taken_out(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, calling("a"), answering("a"), answering("a"), assistant("done"))
        found = context(storage, session)
        assert [record.content for record in found.records] == ["call a", "result a", "done"]
        assert found.incomplete_records == 1

    def test_a_group_that_still_waits_is_taken_out_until_its_answer_comes(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        append(storage, session, user("q"), calling("a", "b"), answering("a"))
        assert context_texts(storage, session) == ["q"]
        append(storage, session, answering("b"))
        assert context_texts(storage, session) == ["q", "call a b", "result a", "result b"]

    def test_one_incomplete_group_does_not_take_its_neighbour(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, calling("a"), calling("b"), answering("b"), user("on"))
        assert context_texts(storage, session) == ["call b", "result b", "on"]
        fork(storage, session)
        assert texts(storage, "child") == ["call b", "result b", "on"]

    def test_incomplete_groups_are_not_inherited_wherever_they_stand(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        append(storage, session, user("1"), calling("a"), user("2"), answering("x"), user("3"))
        append(storage, session, calling("b", "c"), answering("c"))
        reply = fork(storage, session)
        assert texts(storage, "child") == ["1", "2", "3"]
        assert reply.incomplete_records == 4
        assert reply.inherited_through_seq == 5
        assert len(texts(storage, session)) == 7

    def test_the_answer_may_still_come_in_the_source_and_a_later_fork_has_it(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        append(storage, session, user("q"), calling("a"))
        fork(storage, session, "early")
        append(storage, session, answering("a"))
        fork(storage, session, "late")
        assert texts(storage, "early") == ["q"]
        assert texts(storage, "late") == ["q", "call a", "result a"]

    def test_an_answer_given_in_the_fork_has_no_call_there(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, user("q"), calling("a"))
        fork(storage, session)
        append(storage, "child", answering("a"), user("on"))
        assert context_texts(storage, "child") == ["q", "on"]

    def test_a_rewind_to_an_open_call_opens_it_again(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, user("q"), calling("a"), user("never mind"))
        assert context_texts(storage, session) == ["q", "never mind"]
        rewind(storage, session, 2)
        append(storage, session, answering("a"), assistant("done"))
        assert context_texts(storage, session) == ["q", "call a", "result a", "done"]
        fork(storage, session)
        assert texts(storage, "child") == ["q", "call a", "result a", "done"]

    def test_a_rewind_into_a_whole_group_leaves_it_incomplete(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, user("q"), calling("a", "b"), answering("a"), answering("b"), assistant("done"))
        rewind(storage, session, 3)
        assert texts(storage, session) == ["q", "call a b", "result a"]
        assert context_texts(storage, session) == ["q"]
        append(storage, session, user("on"))
        fork(storage, session)
        assert texts(storage, "child") == ["q", "on"]

    def test_a_rewind_in_a_fork_leaves_the_group_of_the_source_whole(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        append(storage, session, user("q"), calling("a"), answering("a"), assistant("done"))
        fork(storage, session)
        rewind(storage, "child", 2)
        append(storage, "child", user("on"))
        fork(storage, "child", "grandchild")
        fork(storage, session, "sibling")
        assert texts(storage, "grandchild") == ["q", "on"]
        assert context_texts(storage, session) == texts(storage, "sibling") == ["q", "call a", "result a", "done"]

    def test_a_trim_drops_an_incomplete_group_as_a_whole_or_keeps_it(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        for keep, rest in itertools.product(range(6), [False, True]):
            session_id = put(storage, f"s{keep}{rest}").id
            append(storage, session_id, user("1"), calling("a", "b"), answering("b"))
            if rest:
                append(storage, session_id, user("2"), user("3"))
            trim(storage, session_id, keep)
            kept = texts(storage, session_id)
            assert ("call a b" in kept) == ("result b" in kept), (keep, rest)

    def test_a_trim_to_an_open_call_lets_its_answer_come(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, user("q"), calling("a", "b"), answering("a"))
        trim(storage, session, 1)
        assert texts(storage, session) == ["call a b", "result a"]
        append(storage, session, answering("b"))
        assert context_texts(storage, session) == ["call a b", "result a", "result b"]

    def test_a_trim_of_everything_forgets_the_open_call(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, user("q"), calling("a"))
        trim(storage, session, 0)
        append(storage, session, answering("a"), user("on"))
        assert context_texts(storage, session) == ["on"]
        fork(storage, session)
        assert texts(storage, "child") == ["on"]

    def test_records_handed_to_a_fork_lose_incomplete_groups_too(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        handed = pb.RecordList(records=[user("1"), calling("a"), user("2"), calling("b"), answering("b")])
        storage.ForkSession(pb.ForkSessionRequest(source_session_id=session, session_id="child", records=handed))
        assert context_texts(storage, "child") == ["1", "2", "call b", "result b"]

    def test_an_open_call_is_inherited_by_nobody_even_after_the_source_is_gone(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        append(storage, session, user("q"), calling("a"))
        fork(storage, session)
        delete(storage, session)
        assert texts(storage, "child") == ["q"]
        append(storage, "child", user("on"))
        assert texts(storage, "child") == context_texts(storage, "child") == ["q", "on"]

    def test_a_long_run_of_calls_is_still_read_right(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, user("q"), calling("open"))
        for number in range(150):
            append(storage, session, calling(f"c{number}"), answering(f"c{number}"))
        assert trim(storage, session, 3).kept_records == 4
        assert texts(storage, session) == ["call c148", "result c148", "call c149", "result c149"]


class TestGroupBudgets:
    def test_a_group_larger_than_the_budget_is_left_out_whole(self, storage: SessionStorageStub, session: str) -> None:
        calls = [f"c{number}" for number in range(5)]
        append(storage, session, user("q"), calling(*calls), *map(answering, calls))
        found = context(storage, session, max_records=3)
        assert list(found.records) == []
        assert found.older_left_out

    def test_incomplete_records_are_counted_within_the_budget_only(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        append(storage, session, calling("a"), user("1"), calling("b"), user("2"))
        assert context(storage, session).incomplete_records == 2
        found = context(storage, session, max_records=3)
        assert [record.content for record in found.records] == ["1", "2"]
        assert (found.incomplete_records, found.older_left_out) == (1, True)

    def test_an_answer_belongs_to_the_nearest_earlier_call_without_one(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        append(storage, session, calling("a"), calling("a"), answering("a"), user("on"))
        found = storage.GetContext(pb.GetContextRequest(session_id=session))
        assert [record.seq for record in found.records] == [2, 3, 4]
        assert found.incomplete_records == 1

    def test_records_after_a_group_that_does_not_fit_still_come(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        append(storage, session, user("q"), calling("a"), answering("a"), assistant("done"))
        found = context(storage, session, max_records=2)
        assert [record.content for record in found.records] == ["done"]
        assert found.older_left_out
