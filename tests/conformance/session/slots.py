"""Context slots: three, each with its own pair of methods and its own version."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from tests.conformance.refusing import archived, bad_field, reason_of, stale_head, stale_version, unknown_session
from tests.conformance.session.making import append, archive, get, get_insight, put_insight, user

Read = Callable[[SessionStorageStub, str], pb.Slot]
Write = Callable[[SessionStorageStub, str, str | None, int | None], pb.Slot]


def read_system_prompt(storage: SessionStorageStub, session_id: str) -> pb.Slot:
    return storage.GetSystemPrompt(pb.GetSystemPromptRequest(session_id=session_id))


def read_memory(storage: SessionStorageStub, session_id: str) -> pb.Slot:
    return storage.GetMemory(pb.GetMemoryRequest(session_id=session_id))


def write_system_prompt(storage: SessionStorageStub, session_id: str, text: str | None, version: int | None) -> pb.Slot:
    return storage.PutSystemPrompt(
        pb.PutSystemPromptRequest(session_id=session_id, content=text, expected_version=version)
    )


def write_memory(storage: SessionStorageStub, session_id: str, text: str | None, version: int | None) -> pb.Slot:
    return storage.PutMemory(pb.PutMemoryRequest(session_id=session_id, content=text, expected_version=version))


def write_insight(storage: SessionStorageStub, session_id: str, text: str | None, version: int | None) -> pb.Slot:
    if text is None:
        return storage.ClearInsight(pb.ClearInsightRequest(session_id=session_id, expected_version=version))
    return storage.PutInsight(pb.PutInsightRequest(session_id=session_id, content=text, expected_version=version))


SLOTS = [
    pytest.param(read_system_prompt, write_system_prompt, id="system_prompt"),
    pytest.param(get_insight, write_insight, id="insight"),
    pytest.param(read_memory, write_memory, id="memory"),
]


@pytest.mark.parametrize(("read", "write"), SLOTS)
class TestEverySlot:
    def test_unset_before_the_first_write(
        self, storage: SessionStorageStub, session: str, read: Read, write: Write
    ) -> None:
        assert read(storage, session) == pb.Slot()

    def test_a_write_sets_counts_and_dates(
        self, storage: SessionStorageStub, session: str, read: Read, write: Write
    ) -> None:
        first = write(storage, session, "一 first 👋", None)
        assert (first.content, first.version) == ("一 first 👋", 1)
        assert read(storage, session) == first
        second = write(storage, session, "second", None)
        assert (second.content, second.version) == ("second", 2)
        assert second.updated_at.ToNanoseconds() > first.updated_at.ToNanoseconds()

    def test_empty_is_set_and_unset_is_not(
        self, storage: SessionStorageStub, session: str, read: Read, write: Write
    ) -> None:
        write(storage, session, "", None)
        empty = read(storage, session)
        assert empty.HasField("content")
        assert empty.content == ""
        cleared = write(storage, session, None, None)
        assert not cleared.HasField("content")
        assert cleared.version == 2
        assert read(storage, session) == cleared

    def test_an_expected_version_must_be_the_current_one(
        self, storage: SessionStorageStub, session: str, read: Read, write: Write
    ) -> None:
        """langgraph#8810: a delayed write with the old version is refused, and the newer text stays."""
        with stale_version() as refusal:
            write(storage, session, "x", 1)
        assert refusal.metadata["current"] == "0"
        first = write(storage, session, "first", 0)
        newer = write(storage, session, "newer", first.version)
        with stale_version() as refusal:
            write(storage, session, "delayed", first.version)
        assert refusal.metadata["current"] == str(newer.version)
        with stale_version():
            write(storage, session, "delayed", 0)
        with stale_version():
            write(storage, session, None, first.version)
        assert read(storage, session) == newer

    def test_a_clear_counts_so_that_a_stale_write_cannot_return(
        self, storage: SessionStorageStub, session: str, read: Read, write: Write
    ) -> None:
        write(storage, session, "text", 0)
        write(storage, session, None, 1)
        with stale_version():
            write(storage, session, "again", 0)
        assert write(storage, session, "again", 2).version == 3

    def test_of_many_writes_at_one_version_one_holds(
        self, storage: SessionStorageStub, session: str, read: Read, write: Write
    ) -> None:
        with ThreadPoolExecutor(8) as pool:
            writes = [partial(write, storage, session, f"w{number}", 0) for number in range(8)]
            reasons = list(pool.map(reason_of, writes))
        assert sorted(map(str, reasons)) == ["None"] + ["STALE_VERSION"] * 7
        held = read(storage, session)
        assert (held.content, held.version) == (f"w{reasons.index(None)}", 1)

    def test_first_writes_at_once_all_count(
        self, storage: SessionStorageStub, session: str, read: Read, write: Write
    ) -> None:
        with ThreadPoolExecutor(8) as pool:
            versions = [slot.version for slot in pool.map(lambda n: write(storage, session, f"{n}", None), range(8))]
        assert sorted(versions) == list(range(1, 9))

    def test_an_archived_session_is_readable_only(
        self, storage: SessionStorageStub, session: str, read: Read, write: Write
    ) -> None:
        kept = write(storage, session, "kept", None)
        archive(storage, session)
        with archived():
            write(storage, session, "late", None)
        with archived():
            write(storage, session, None, None)
        assert read(storage, session) == kept

    def test_an_unknown_session_is_not_found(self, storage: SessionStorageStub, read: Read, write: Write) -> None:
        with unknown_session():
            read(storage, "nobody")
        with unknown_session():
            write(storage, "nobody", "x", None)
        with unknown_session():
            write(storage, "nobody", None, None)

    def test_the_session_itself_is_not_touched(
        self, storage: SessionStorageStub, session: str, read: Read, write: Write
    ) -> None:
        before = get(storage, session)
        write(storage, session, "text", None)
        assert get(storage, session) == before


class TestSlotsApart:
    def test_slots_do_not_mix(self, storage: SessionStorageStub, session: str) -> None:
        write_system_prompt(storage, session, "prompt", None)
        write_memory(storage, session, "memory", None)
        assert get_insight(storage, session) == pb.Slot()
        put_insight(storage, session, "insight")
        assert read_system_prompt(storage, session).content == "prompt"
        assert read_memory(storage, session).content == "memory"
        assert get_insight(storage, session).content == "insight"

    def test_an_insight_without_content_is_refused(self, storage: SessionStorageStub, session: str) -> None:
        with bad_field("content"):
            storage.PutInsight(pb.PutInsightRequest(session_id=session))
        assert get_insight(storage, session).version == 0


class TestConsumingInsight:
    def test_the_turn_that_read_it_unsets_it_in_its_own_append(self, storage: SessionStorageStub, session: str) -> None:
        read = put_insight(storage, session, "look again")
        reply = append(storage, session, user(), consume_insight_version=read.version)
        assert reply.insight_consumed
        after = get_insight(storage, session)
        assert not after.HasField("content")
        assert after.version == reply.insight_version == read.version + 1

    def test_a_newer_insight_stays_and_the_append_stands(self, storage: SessionStorageStub, session: str) -> None:
        read = put_insight(storage, session, "old")
        newer = put_insight(storage, session, "new")
        reply = append(storage, session, user(), consume_insight_version=read.version)
        assert not reply.insight_consumed
        assert reply.insight_version == newer.version
        assert list(reply.seqs) == [1]
        assert get_insight(storage, session) == newer

    def test_an_insight_is_consumed_once(self, storage: SessionStorageStub, session: str) -> None:
        version = put_insight(storage, session, "once").version
        assert append(storage, session, user(), consume_insight_version=version).insight_consumed
        second = append(storage, session, user(), consume_insight_version=version)
        assert not second.insight_consumed
        assert second.insight_version == version + 1

    def test_an_unset_insight_is_not_consumed(self, storage: SessionStorageStub, session: str) -> None:
        reply = append(storage, session, user(), consume_insight_version=0)
        assert not reply.insight_consumed
        assert reply.insight_version == 0
        assert get_insight(storage, session) == pb.Slot()

    def test_the_empty_insight_is_one(self, storage: SessionStorageStub, session: str) -> None:
        version = put_insight(storage, session, "").version
        assert append(storage, session, user(), consume_insight_version=version).insight_consumed

    def test_a_refused_append_consumes_nothing(self, storage: SessionStorageStub, session: str) -> None:
        slot = put_insight(storage, session, "stays")
        append(storage, session, user())
        with stale_head():
            append(storage, session, user(), expected_head_seq=0, consume_insight_version=slot.version)
        assert get_insight(storage, session) == slot

    def test_turns_at_once_consume_it_once(self, storage: SessionStorageStub, session: str) -> None:
        version = put_insight(storage, session, "once").version
        with ThreadPoolExecutor(8) as pool:
            replies = list(
                pool.map(lambda _: append(storage, session, user(), consume_insight_version=version), range(8))
            )
        assert [reply.insight_consumed for reply in replies].count(True) == 1
        assert {reply.insight_version for reply in replies} == {version + 1}

    def test_a_version_that_never_was_is_not_consumed(self, storage: SessionStorageStub, session: str) -> None:
        slot = put_insight(storage, session, "stays")
        reply = append(storage, session, user(), consume_insight_version=(1 << 63) - 1)
        assert (reply.insight_consumed, reply.insight_version) == (False, slot.version)
        assert get_insight(storage, session) == slot

    def test_a_negative_version_is_refused(self, storage: SessionStorageStub, session: str) -> None:
        with bad_field("consume_insight_version"):
            append(storage, session, user(), consume_insight_version=-1)
