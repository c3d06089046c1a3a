"""Sizes and characters: exact up to the limit, and refused with the limit beyond it, the same on every backend."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from tests.conformance.refusing import bad_field, too_large
from tests.conformance.session.making import (
    answering,
    append,
    calling,
    fork,
    get,
    history,
    put,
    put_insight,
    put_memory,
    put_system_prompt,
    texts,
    user,
    users,
)

KIB, MIB = 1024, 1024 * 1024


def text_of(size: int) -> str:
    """A text of exactly so many bytes of UTF-8, mostly in characters of more than one byte."""
    return "计" * (size // 3) + "x" * (size % 3)


class TestIdsAndLabels:
    @pytest.mark.parametrize("length", [1, 127, 128])
    def test_an_id_up_to_128_characters_is_kept(self, storage: SessionStorageStub, length: int) -> None:
        session_id = "i" * length
        put(storage, session_id)
        append(storage, session_id, user())
        assert get(storage, session_id).head_seq == 1

    @pytest.mark.parametrize("length", [129, 150, 255, 300])
    def test_a_longer_id_is_refused_with_field_and_limit(self, storage: SessionStorageStub, length: int) -> None:
        """langgraph-checkpoint-mysql#39: a long id is refused by name and limit, never cut or an internal error."""
        with too_large(128, names="session.id"):
            put(storage, "i" * length)
        with too_large(128, names="session_id"):
            get(storage, "i" * length)

    @pytest.mark.parametrize("session_id", [" a", "a ", "a\tb", "a\nb", "a\x00b", "a\x7f", "é", "计", "\u200b"])
    def test_an_id_of_other_characters_is_refused(self, storage: SessionStorageStub, session_id: str) -> None:
        with bad_field("session.id"):
            put(storage, session_id)
        with bad_field("session_id"):
            get(storage, session_id)

    def test_an_empty_id_is_refused_where_one_is_required(self, storage: SessionStorageStub) -> None:
        with bad_field("session_id"):
            get(storage, "")
        with bad_field("session_id"):
            append(storage, "", user())

    @pytest.mark.parametrize("length", [150, 255, 256])
    @pytest.mark.parametrize("letter", ["a", "计", "😀"])
    def test_a_label_up_to_256_characters_is_kept(self, storage: SessionStorageStub, letter: str, length: int) -> None:
        """langgraph-checkpoint-mysql#39: labels of 150 and 255 characters are stored whole."""
        put(storage, "main", label=letter * length)
        assert get(storage, "main").label == letter * length

    @pytest.mark.parametrize("length", [257, 300])
    def test_a_longer_label_is_refused_with_the_limit(self, storage: SessionStorageStub, length: int) -> None:
        """langgraph-checkpoint-mysql#39: a label of 300 characters is refused with field and limit."""
        with too_large(256, names="session.label"):
            put(storage, "main", label="计" * length)

    def test_labels_keep_what_databases_like_to_fold(self, storage: SessionStorageStub) -> None:
        for number, label in enumerate(["a ", " a", "e\u0301", "é", "ß", "ss", "İ", "a\nb", "\\", "'\"`;--"]):
            session_id = f"s{number}"
            assert put(storage, session_id, label=label).label == label
            assert get(storage, session_id).label == label


class TestTags:
    def test_sixty_four_are_kept_and_one_more_refused(self, storage: SessionStorageStub) -> None:
        tags = sorted(f"t{number}" for number in range(64))
        assert list(put(storage, "main", tags=tags).tags) == tags
        with too_large(64, names="session.tags"):
            put(storage, "main", tags=[*tags, "one-more"])

    def test_a_tag_has_up_to_128_characters(self, storage: SessionStorageStub) -> None:
        assert list(put(storage, "main", tags=["t" * 128]).tags) == ["t" * 128]
        with too_large(128, names="session.tags[0]"):
            put(storage, "main", tags=["t" * 129])

    @pytest.mark.parametrize("tag", ["", " a", "a ", "a\nb", "a\x00b", "\x1f", "a\x7f"])
    def test_a_bad_tag_is_refused(self, storage: SessionStorageStub, tag: str) -> None:
        with bad_field("session.tags[1]"):
            put(storage, "main", tags=["good", tag])

    @pytest.mark.parametrize("tag", ["设计", "é", "e\u0301", "😀", "a b"])
    def test_a_tag_may_be_of_any_script(self, storage: SessionStorageStub, tag: str) -> None:
        put(storage, "main", tags=[tag])
        put(storage, "other", tags=["e", "E"])
        assert list(get(storage, "main").tags) == [tag]
        listed = storage.ListSessions(pb.ListSessionsRequest(filter=pb.SessionFilter(tags=[tag])))
        assert [session.id for session in listed.sessions] == ["main"]


class TestRecordSizes:
    @pytest.mark.parametrize("size", [64 * KIB - 1, 64 * KIB, 64 * KIB + 1, 4 * MIB - 1, 4 * MIB])
    def test_content_up_to_the_limit_is_exact(self, storage: SessionStorageStub, session: str, size: int) -> None:
        """mlrun#2387: content around 64 KiB and at the limit comes back byte for byte."""
        append(storage, session, user(text_of(size)))
        assert texts(storage, session) == [text_of(size)]

    @pytest.mark.parametrize("size", [4 * MIB + 1, 16 * MIB - 1, 16 * MIB, 16 * MIB + 1])
    def test_content_beyond_the_limit_is_refused_with_it(
        self, storage: SessionStorageStub, session: str, size: int
    ) -> None:
        """mlrun#2387: content around 16 MiB is refused with the limit, and nothing is stored."""
        with too_large(4 * MIB):
            append(storage, session, user(text_of(size)))
        assert get(storage, session).head_seq == 0

    def test_all_text_of_a_record_counts_together(self, storage: SessionStorageStub, session: str) -> None:
        arguments = '"' + "a" * (MIB - 2) + '"'
        record = calling("c1", arguments_json=arguments)
        record.parts_json = '"' + "p" * (MIB - 2) + '"'
        record.metadata_json = '"' + "m" * (MIB - 2) + '"'
        record.content = "x" * (MIB + 1)
        with too_large(4 * MIB):
            append(storage, session, record)
        record.content = "x" * (MIB - 100)
        append(storage, session, record)
        assert history(storage, session)[0].tool_calls[0].arguments_json == arguments

    def test_an_append_of_sixteen_mebibytes_is_taken_and_one_byte_more_refused(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        """mlrun#2387: 16 MiB in one append come back exact; one more byte is refused with the limit."""
        full = [user(text_of(4 * MIB)) for _ in range(4)]
        append(storage, session, *full)
        assert [len(text.encode()) for text in texts(storage, session)] == [4 * MIB] * 4
        with too_large(16 * MIB):
            append(storage, session, *full, user("x"))
        assert get(storage, session).head_seq == 4

    def test_records_handed_to_a_fork_are_held_to_the_same_limits(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        request = pb.ForkSessionRequest(source_session_id=session, session_id="child")
        request.records.records.extend([user(text_of(4 * MIB))] * 4)
        request.records.records.append(user("x"))
        with too_large(16 * MIB):
            storage.ForkSession(request)
        del request.records.records[3:]
        request.records.records.append(user(text_of(4 * MIB + 1)))
        with too_large(4 * MIB):
            storage.ForkSession(request)
        del request.records.records[3]
        storage.ForkSession(request)
        assert texts(storage, "child") == [text_of(4 * MIB)] * 3

    def test_a_thousand_records_are_taken_and_one_more_refused(self, storage: SessionStorageStub, session: str) -> None:
        with too_large(1000, names="records"):
            append(storage, session, *users(1001))
        append(storage, session, *users(1000))
        assert get(storage, session).head_seq == 1000

    def test_a_hundred_and_twenty_eight_tool_calls_are_taken_and_one_more_refused(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        ids = [f"c{number}" for number in range(129)]
        with too_large(128, names="records[0].tool_calls"):
            append(storage, session, calling(*ids))
        append(storage, session, calling(*ids[:128]))
        assert len(history(storage, session)[0].tool_calls) == 128

    @pytest.mark.parametrize("letter", ["a", "计", "😀", " "])
    def test_names_and_ids_of_tool_calls_have_up_to_256_characters(
        self, storage: SessionStorageStub, session: str, letter: str
    ) -> None:
        call_id = f"x{letter * 254}x"
        answer = answering(call_id)
        answer.name = call_id
        call = pb.Record(role=pb.ROLE_ASSISTANT, tool_calls=[pb.ToolCall(id=call_id, name=call_id)])
        append(storage, session, call, answer)
        stored = history(storage, session)
        assert stored[0].tool_calls[0] == call.tool_calls[0]
        assert (stored[1].tool_call_id, stored[1].name) == (call_id, call_id)

    @pytest.mark.parametrize(
        ("record", "path"),
        [
            (pb.Record(role=pb.ROLE_USER, name="n" * 257), "records[0].name"),
            (pb.Record(role=pb.ROLE_TOOL, tool_call_id="i" * 257), "records[0].tool_call_id"),
            (calling("i" * 257), "records[0].tool_calls[0].id"),
            (
                pb.Record(role=pb.ROLE_ASSISTANT, tool_calls=[pb.ToolCall(id="c", name="n" * 257)]),
                "records[0].tool_calls[0].name",
            ),
        ],
    )
    def test_longer_names_and_ids_are_refused(
        self, storage: SessionStorageStub, session: str, record: pb.Record, path: str
    ) -> None:
        with too_large(256, names=path):
            append(storage, session, record)

    def test_ids_of_tool_calls_are_told_apart_by_space_and_case(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        append(storage, session, calling("a", "A", "a "), answering("a "), answering("A"), answering("a"))
        found = storage.GetContext(pb.GetContextRequest(session_id=session))
        assert (len(found.records), found.incomplete_records) == (4, 0)


class TestOtherSizes:
    @pytest.mark.parametrize(
        "write", [put_system_prompt, put_insight, put_memory], ids=["system_prompt", "insight", "memory"]
    )
    def test_a_slot_holds_four_mebibytes(
        self, storage: SessionStorageStub, session: str, write: Callable[[SessionStorageStub, str, str], pb.Slot]
    ) -> None:
        assert write(storage, session, text_of(4 * MIB)).content == text_of(4 * MIB)
        with too_large(4 * MIB, names="content"):
            write(storage, session, text_of(4 * MIB + 1))
        slots = storage.BatchGetSlots(
            pb.BatchGetSlotsRequest(session_ids=[session], slots=list(pb.SlotName.values())[1:])
        )
        assert sum(len(part.SerializeToString()) > 4 * MIB for part in slots) == 1

    def test_system_prompts_of_create_and_fork_are_held_to_the_same_limit(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        long = text_of(4 * MIB + 1)
        with too_large(4 * MIB, names="system_prompt"):
            storage.PutSession(pb.PutSessionRequest(session=pb.Session(id="x"), system_prompt=long))
        with too_large(4 * MIB, names="system_prompt"):
            storage.ForkSession(pb.ForkSessionRequest(source_session_id=session, system_prompt=long))
        with too_large(4 * MIB):
            fork(storage, session, opening_prompt=long)

    def test_metadata_holds_one_mebibyte(self, storage: SessionStorageStub, session: str) -> None:
        exact = '"' + text_of(MIB - 2) + '"'
        assert put(storage, session, metadata_json=exact).metadata_json == exact
        longer = '"' + text_of(MIB - 1) + '"'
        with too_large(MIB, names="session.metadata_json"):
            put(storage, session, metadata_json=longer)
        with too_large(MIB, names="records[0].metadata_json"):
            append(storage, session, pb.Record(role=pb.ROLE_USER, metadata_json=longer))
        assert get(storage, session).metadata_json == exact


class TestCharacters:
    """langgraph#1878: NUL in content, label or JSON gets the same answer on every backend."""

    @pytest.mark.parametrize(
        ("record", "path"),
        [
            (user("a\x00b"), "records[0].content"),
            (pb.Record(role=pb.ROLE_USER, name="a\x00"), "records[0].name"),
            (pb.Record(role=pb.ROLE_TOOL, tool_call_id="\x00a"), "records[0].tool_call_id"),
            (pb.Record(role=pb.ROLE_USER, parts_json='"\x00"'), "records[0].parts_json"),
            (pb.Record(role=pb.ROLE_USER, parts_json='"\\u0000"'), "records[0].parts_json"),
            (pb.Record(role=pb.ROLE_USER, metadata_json='{"\\u0000": 1}'), "records[0].metadata_json"),
            (
                pb.Record(role=pb.ROLE_ASSISTANT, tool_calls=[pb.ToolCall(id="a\x00", name="n")]),
                "records[0].tool_calls[0].id",
            ),
            (calling("a", arguments_json='{"a": "\\u0000"}'), "records[0].tool_calls[0].arguments_json"),
        ],
    )
    def test_nul_in_a_record_is_refused(
        self, storage: SessionStorageStub, session: str, record: pb.Record, path: str
    ) -> None:
        with bad_field(path):
            append(storage, session, record)
        assert history(storage, session) == []

    def test_nul_elsewhere_is_refused(self, storage: SessionStorageStub, session: str) -> None:
        with bad_field("session.label"):
            put(storage, session, label="a\x00b")
        with bad_field("session.metadata_json"):
            put(storage, session, metadata_json='"\\u0000"')
        for write in (put_system_prompt, put_insight, put_memory):
            with bad_field("content"):
                write(storage, session, "a\x00b")
        with bad_field("opening_prompt"):
            fork(storage, session, opening_prompt="a\x00b")
        with bad_field("label_prefix"):
            storage.ListSessions(pb.ListSessionsRequest(filter=pb.SessionFilter(label_prefix="a\x00")))
        assert get(storage, session).label == ""

    @pytest.mark.parametrize(
        "text",
        [
            "",
            " ",
            " lead and trail ",
            "tab\tand\r\nlines\n",
            "\ufeffbom",
            "e\u0301 é",
            "👩‍👩‍👧‍👦 🏳️‍🌈",
            "\U0010ffff \uffff \ufffd",
            "\u202eright to left",
            "%s %(x)s {x} :name ? \\ ' \" ` ; --",
            "\x01\x1f\x7f\x80",
            "a" * 70_000,
        ],
    )
    def test_text_comes_back_exactly(self, storage: SessionStorageStub, session: str, text: str) -> None:
        append(storage, session, user(text))
        assert texts(storage, session) == [text]
        assert put_memory(storage, session, text).content == text
        assert storage.GetMemory(pb.GetMemoryRequest(session_id=session)).content == text
