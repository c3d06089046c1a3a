"""Forks: a new session over the history of a source, which is only read."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from tests.conformance.refusing import bad_field, refused, too_large, unknown_session
from tests.conformance.session.making import (
    append,
    archive,
    assistant,
    context,
    context_texts,
    delete,
    fork,
    get,
    get_insight,
    history,
    pages,
    put,
    put_insight,
    put_memory,
    put_system_prompt,
    seqs,
    texts,
    trim,
    user,
    users,
)


def system_prompt(storage: SessionStorageStub, session_id: str) -> pb.Slot:
    """The system prompt of a session."""
    return storage.GetSystemPrompt(pb.GetSystemPromptRequest(session_id=session_id))


class TestInheriting:
    def test_all_that_the_source_shows(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(5))
        trim(storage, session, 4)
        reply = fork(storage, session)
        assert reply.inherited_through_seq == 5
        assert reply.incomplete_records == 0
        assert history(storage, "child") == history(storage, session)
        assert (reply.session.head_seq, reply.session.floor_seq) == (5, 1)
        assert reply.session == get(storage, "child")

    @pytest.mark.parametrize("choice", ["none", "nothing"])
    def test_nothing(self, storage: SessionStorageStub, session: str, choice: str) -> None:
        append(storage, session, *users(5))
        request = pb.ForkSessionRequest(source_session_id=session, session_id="child")
        if choice == "none":
            request.none.SetInParent()
        reply = storage.ForkSession(request)
        assert reply.inherited_through_seq == 0
        assert (reply.session.head_seq, reply.session.floor_seq) == (0, 0)
        assert texts(storage, "child") == []

    @pytest.mark.parametrize("seq", [2, 3, 5])
    def test_up_to_and_with_a_seq(self, storage: SessionStorageStub, session: str, seq: int) -> None:
        append(storage, session, *users(5))
        trim(storage, session, 4)
        reply = fork(storage, session, up_to_seq=seq)
        assert reply.inherited_through_seq == seq
        assert seqs(storage, "child") == list(range(2, seq + 1))

    def test_up_to_the_floor_is_nothing(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(5))
        trim(storage, session, 2)
        assert fork(storage, session, up_to_seq=3).inherited_through_seq == 0
        assert texts(storage, "child") == []

    def test_a_seq_out_of_range_is_refused(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(5))
        trim(storage, session, 2)
        with refused(grpc.StatusCode.OUT_OF_RANGE, "BELOW_TRIM_FLOOR") as refusal:
            fork(storage, session, up_to_seq=2)
        assert refusal.metadata["floor_seq"] == "3"
        with refused(grpc.StatusCode.OUT_OF_RANGE, "ABOVE_HEAD") as refusal:
            fork(storage, session, up_to_seq=6)
        assert refusal.metadata["head_seq"] == "5"
        with unknown_session():
            get(storage, "child")

    @pytest.mark.parametrize("last", [0, 1, 4, 5, 9])
    def test_the_most_recent(self, storage: SessionStorageStub, session: str, last: int) -> None:
        append(storage, session, *users(5))
        reply = fork(storage, session, last=last)
        assert texts(storage, "child") == ["r1", "r2", "r3", "r4", "r5"][max(0, 5 - last) :]
        assert reply.inherited_through_seq == (5 if last else 0)
        assert reply.session.floor_seq == (max(0, 5 - last) if last else 0)

    def test_records_handed_over_are_its_own(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(5))
        handed = pb.RecordList(records=[user("summary"), assistant("noted")])
        reply = storage.ForkSession(
            pb.ForkSessionRequest(source_session_id=session, session_id="child", records=handed)
        )
        assert reply.inherited_through_seq == 0
        assert texts(storage, "child") == ["summary", "noted"]
        assert reply.session.head_seq == 2
        diff = storage.DiffSessions(pb.DiffSessionsRequest(left_session_id=session, right_session_id="child"))
        assert diff.common_through_seq == 0

    def test_handed_records_are_held_to_the_rules_of_records(self, storage: SessionStorageStub, session: str) -> None:
        handed = pb.RecordList(records=[user(), pb.Record(role=pb.ROLE_TOOL, content="x")])
        request = pb.ForkSessionRequest(source_session_id=session, session_id="child", records=handed)
        with bad_field("records[1].tool_call_id"):
            storage.ForkSession(request)
        request = pb.ForkSessionRequest(source_session_id=session, session_id="child")
        request.records.records.extend(users(1001))
        with too_large(1000, names="records"):
            storage.ForkSession(request)
        with unknown_session():
            get(storage, "child")

    def test_an_opening_prompt_is_an_assistant_record(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(2))
        reply = fork(storage, session, opening_prompt="Let us go deeper.")
        assert reply.inherited_through_seq == 2
        opening = history(storage, "child")[-1]
        assert (opening.role, opening.content) == (pb.ROLE_ASSISTANT, "Let us go deeper.")
        assert opening.seq == reply.session.head_seq > 2
        assert texts(storage, session) == ["r1", "r2"]

    def test_an_empty_opening_prompt_is_none(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(2))
        assert fork(storage, session, opening_prompt="").session.head_seq == 2
        assert texts(storage, "child") == ["r1", "r2"]


class TestTheNewSession:
    def test_it_has_its_own_label_tags_and_metadata(self, storage: SessionStorageStub) -> None:
        put(storage, "source", label="S", tags=["s"], metadata_json="1")
        append(storage, "source", user(), turn_delta=3)
        reply = storage.ForkSession(
            pb.ForkSessionRequest(
                source_session_id="source", session_id="child", label="C", tags=["b", "a"], metadata_json="[2]"
            )
        )
        made = reply.session
        assert (made.id, made.label, list(made.tags), made.metadata_json) == ("child", "C", ["a", "b"], "[2]")
        assert (made.status, made.version, made.turn_count) == (pb.SESSION_STATUS_ACTIVE, 1, 0)
        plain = fork(storage, "source", "plain").session
        assert (plain.label, list(plain.tags), plain.metadata_json) == ("", [], "")

    def test_its_fields_are_held_to_the_same_rules_as_those_of_any_session(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        of_session = pb.ForkSessionRequest(source_session_id=session, session_id="child")
        with too_large(256, names="label"):
            storage.ForkSession(pb.ForkSessionRequest(source_session_id=session, label="x" * 257))
        with bad_field("tags[0]"):
            storage.ForkSession(pb.ForkSessionRequest(source_session_id=session, tags=[" x"]))
        with too_large(128, names="session_id"):
            storage.ForkSession(pb.ForkSessionRequest(source_session_id=session, session_id="x" * 129))
        assert storage.ForkSession(of_session).session.label == ""

    def test_without_an_id_the_server_makes_one(self, storage: SessionStorageStub, session: str) -> None:
        made = fork(storage, session, "").session
        assert made.id not in {"", session}
        assert get(storage, made.id) == made

    def test_a_taken_id_is_refused(self, storage: SessionStorageStub, session: str) -> None:
        put(storage, "child", label="there")
        for child in ("child", session):
            with refused(grpc.StatusCode.ALREADY_EXISTS, "SESSION_EXISTS"):
                fork(storage, session, child)
        assert get(storage, "child").label == "there"

    def test_an_unknown_source_is_not_found(self, storage: SessionStorageStub) -> None:
        with unknown_session():
            fork(storage, "nobody")
        with unknown_session():
            get(storage, "child")

    def test_its_system_prompt_is_the_sources_unless_given(self, storage: SessionStorageStub, session: str) -> None:
        put_system_prompt(storage, session, "old")
        put_system_prompt(storage, session, "prompt")
        fork(storage, session)
        assert system_prompt(storage, "child").content == "prompt"
        put_system_prompt(storage, session, "later")
        assert system_prompt(storage, "child").content == "prompt"
        request = pb.ForkSessionRequest(source_session_id=session, session_id="own", system_prompt="own")
        storage.ForkSession(request)
        assert system_prompt(storage, "own").content == "own"
        storage.ForkSession(pb.ForkSessionRequest(source_session_id=session, session_id="empty", system_prompt=""))
        empty = system_prompt(storage, "empty")
        assert empty.HasField("content")
        assert empty.content == ""

    def test_an_unset_system_prompt_stays_unset(self, storage: SessionStorageStub, session: str) -> None:
        fork(storage, session)
        assert not system_prompt(storage, "child").HasField("content")

    def test_memory_and_insight_are_never_copied(self, storage: SessionStorageStub, session: str) -> None:
        put_memory(storage, session, "memory")
        put_insight(storage, session, "insight")
        fork(storage, session)
        assert get_insight(storage, "child") == pb.Slot()
        assert storage.GetMemory(pb.GetMemoryRequest(session_id="child")) == pb.Slot()
        assert get_insight(storage, session).content == "insight"

    def test_an_archived_source_can_be_forked_and_stays_as_it_is(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        append(storage, session, user("kept"))
        before = archive(storage, session)
        assert fork(storage, session).session.status == pb.SESSION_STATUS_ACTIVE
        append(storage, "child", user("on"))
        assert texts(storage, "child") == ["kept", "on"]
        assert get(storage, session) == before


class TestApart:
    def test_neither_sees_what_the_other_appends(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(2))
        fork(storage, session)
        append(storage, session, user("source"))
        append(storage, "child", user("child"))
        assert texts(storage, session) == ["r1", "r2", "source"]
        assert texts(storage, "child") == ["r1", "r2", "child"]
        assert seqs(storage, "child") == [1, 2, 3]

    def test_what_belongs_to_one_branch_never_shows_in_the_context_of_another(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        """cloudflare/agents#2120: what belongs to branch A never shows in B's context."""
        append(storage, session, user("shared"))
        for branch in ("a", "b"):
            fork(storage, session, branch)
        for turn in range(3):
            for branch in ("a", "b"):
                append(storage, branch, user(f"{branch}{turn}"), assistant(f"{branch}{turn} answer"))
        fork(storage, "a", "aa")
        append(storage, "aa", user("aa"))
        append(storage, session, user("main"))
        seen = {name: context_texts(storage, name) for name in ("a", "b", "aa", session)}
        turns = {name: [t for i in range(3) for t in (f"{name}{i}", f"{name}{i} answer")] for name in ("a", "b")}
        assert seen["a"] == ["shared", *turns["a"]]
        assert seen["b"] == ["shared", *turns["b"]]
        assert seen["aa"] == ["shared", *turns["a"], "aa"]
        assert seen[session] == ["shared", "main"]

    def test_seqs_go_on_after_the_last_inherited_one(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(5))
        fork(storage, session, up_to_seq=3)
        append(storage, "child", user("own"))
        assert seqs(storage, "child") == [1, 2, 3, 4]
        assert texts(storage, "child") == ["r1", "r2", "r3", "own"]

    def test_a_deleted_source_harms_no_fork(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(3))
        fork(storage, session)
        fork(storage, "child", "grandchild")
        delete(storage, session)
        delete(storage, "child")
        assert texts(storage, "grandchild") == ["r1", "r2", "r3"]

    def test_a_recreated_source_does_not_meet_its_old_records(self, storage: SessionStorageStub) -> None:
        put(storage, "source")
        append(storage, "source", *users(3, "old"))
        fork(storage, "source")
        delete(storage, "source")
        put(storage, "source")
        append(storage, "source", *users(2, "new"))
        assert texts(storage, "source") == ["new1", "new2"]
        assert texts(storage, "child") == ["old1", "old2", "old3"]
        diff = storage.DiffSessions(pb.DiffSessionsRequest(left_session_id="source", right_session_id="child"))
        assert diff.common_through_seq == 0

    def test_forks_at_once_are_all_whole(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(20))
        with ThreadPoolExecutor(8) as pool:
            writes = [pool.submit(append, storage, session, user(f"late{number}")) for number in range(8)]
            for child in [pool.submit(fork, storage, session, f"c{number}") for number in range(8)]:
                child.result()
            for write in writes:
                write.result()
        whole = texts(storage, session)
        for number in range(8):
            inherited = texts(storage, f"c{number}")
            assert inherited == whole[: len(inherited)]
            assert len(inherited) >= 20


class TestForksOfForks:
    def test_pages_run_through_every_generation(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(3, "g0-"))
        current = session
        for generation in range(1, 12):
            child = f"g{generation}"
            fork(storage, current, child)
            append(storage, child, *users(2, f"{child}-"))
            current = child
        expected = ["g0-1", "g0-2", "g0-3"] + [f"g{n}-{m}" for n in range(1, 12) for m in (1, 2)]
        for page_size in (1, 4, 1000):
            for order in (pb.RECORD_ORDER_ASCENDING, pb.RECORD_ORDER_DESCENDING):
                request = pb.ListRecordsRequest(session_id=current, page_size=page_size, order=order)
                found = [record.content for page in pages(storage, request) for record in page.records]
                assert found == (expected if order == pb.RECORD_ORDER_ASCENDING else expected[::-1])
        assert context_texts(storage, current) == expected
        assert [r.content for r in context(storage, current, max_records=4).records] == expected[-4:]

    def test_cuts_of_cuts(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, *users(6))
        fork(storage, session, "a", up_to_seq=5)
        append(storage, "a", *users(3, "a"))
        fork(storage, "a", "b", last=5)
        assert texts(storage, "b") == ["r4", "r5", "a1", "a2", "a3"]
        assert get(storage, "b").floor_seq == 3
        fork(storage, "b", "c", up_to_seq=seqs(storage, "b")[2])
        append(storage, "c", user("c1"))
        assert texts(storage, "c") == ["r4", "r5", "a1", "c1"]

    def test_a_chain_of_a_hundred_and_fifty_forks_reads_whole(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, user("0"))
        current = session
        for generation in range(1, 150):
            child = f"g{generation}"
            fork(storage, current, child)
            append(storage, child, user(str(generation)))
            current = child
        assert texts(storage, current) == [str(generation) for generation in range(150)]
        request = pb.ListRecordsRequest(session_id=current, order=pb.RECORD_ORDER_DESCENDING, page_size=5)
        newest = [record.content for record in storage.ListRecords(request).records]
        assert newest == ["149", "148", "147", "146", "145"]

    def test_bad_choices_are_refused(self, storage: SessionStorageStub, session: str) -> None:
        with bad_field("last"):
            fork(storage, session, last=-1)
        with bad_field("up_to_seq"):
            fork(storage, session, up_to_seq=-1)
