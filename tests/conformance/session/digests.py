"""Slots of many sessions at once: what digests are made of."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from tests.conformance.refusing import bad_field, too_large
from tests.conformance.session.making import archive, put, put_insight, put_memory, put_system_prompt


def collected(
    storage: SessionStorageStub, ids: Iterable[str], *slots: pb.SlotName.ValueType
) -> tuple[list[pb.SessionSlots], list[str]]:
    """All that the stream tells: the slots in order, and the ids that name no session."""
    found: list[pb.SessionSlots] = []
    missing: list[str] = []
    for part in storage.BatchGetSlots(pb.BatchGetSlotsRequest(session_ids=ids, slots=slots)):
        found += part.sessions
        missing += part.missing_session_ids
    return found, missing


class TestBatchGetSlots:
    def test_memory_and_insight_are_read_unless_told_otherwise(self, storage: SessionStorageStub, session: str) -> None:
        prompt = put_system_prompt(storage, session, "prompt")
        insight = put_insight(storage, session, "insight")
        memory = put_memory(storage, session, "memory")
        [[slots], _] = collected(storage, [session])
        assert slots == pb.SessionSlots(session_id=session, insight=insight, memory=memory)
        [[slots], _] = collected(storage, [session], pb.SLOT_NAME_SYSTEM_PROMPT)
        assert slots == pb.SessionSlots(session_id=session, system_prompt=prompt)

    def test_a_slot_that_was_asked_for_and_never_set_is_there_and_unset(
        self, storage: SessionStorageStub, session: str
    ) -> None:
        [[slots], _] = collected(storage, [session])
        assert slots.HasField("insight")
        assert slots.HasField("memory")
        assert not slots.HasField("system_prompt")
        assert slots.insight == slots.memory == pb.Slot()

    def test_the_order_is_that_of_the_request_and_a_repeated_id_is_answered_once(
        self, storage: SessionStorageStub
    ) -> None:
        for session_id in ("a", "b", "c"):
            put(storage, session_id)
            put_memory(storage, session_id, f"memory of {session_id}")
        archive(storage, "b")
        found, missing = collected(storage, ["c", "x", "a", "b", "c", "y"])
        assert [(slots.session_id, slots.memory.content) for slots in found] == [
            ("c", "memory of c"),
            ("a", "memory of a"),
            ("b", "memory of b"),
        ]
        assert missing == ["x", "y"]

    def test_ten_thousand_ids_are_taken_and_no_more(self, storage: SessionStorageStub) -> None:
        for number in range(3):
            put(storage, f"s{number * 4000}")
        ids = [f"s{number}" for number in range(10_000)]
        found, missing = collected(storage, ids)
        assert [slots.session_id for slots in found] == ["s0", "s4000", "s8000"]
        assert len(missing) == 9_997
        with too_large(10_000, names="session_ids"):
            collected(storage, [*ids, "one-more"])

    def test_large_slots_come_in_several_messages(self, storage: SessionStorageStub) -> None:
        limits = storage.GetServerInfo(pb.GetServerInfoRequest()).limits
        for session_id in ("a", "b", "c", "d"):
            put(storage, session_id)
            put_memory(storage, session_id, session_id * limits.max_slot_bytes)
        found, _ = collected(storage, ["a", "b", "c", "d"])
        assert [slots.memory.content[-1:] for slots in found] == ["a", "b", "c", "d"]
        messages = list(storage.BatchGetSlots(pb.BatchGetSlotsRequest(session_ids=["a", "b", "c", "d"])))
        assert len(messages) > 1

    def test_no_ids_are_refused(self, storage: SessionStorageStub) -> None:
        with bad_field("session_ids"):
            collected(storage, [])

    @pytest.mark.parametrize("session_id", ["", " x", "x ", "é", "a\nb"])
    def test_a_bad_id_is_refused(self, storage: SessionStorageStub, session_id: str) -> None:
        with bad_field("session_ids[1]"):
            collected(storage, ["x", session_id])

    @pytest.mark.parametrize("slot", [pb.SLOT_NAME_UNSPECIFIED, 77])
    def test_an_unknown_slot_is_refused(
        self, storage: SessionStorageStub, session: str, slot: pb.SlotName.ValueType
    ) -> None:
        with bad_field("slots[0]"):
            collected(storage, [session], slot)
