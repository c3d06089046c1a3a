"""Messages about context slots."""

from collections.abc import Iterator

from ramet.session.v1 import session_pb2 as pb
from session_service.convert.requests import known, moment_message
from session_service.rules.slots import SlotBatch, SlotWrite
from session_service.rules.values import SessionSlots, Slot, SlotName

_NAMES = {
    pb.SLOT_NAME_SYSTEM_PROMPT: SlotName.SYSTEM_PROMPT,
    pb.SLOT_NAME_INSIGHT: SlotName.INSIGHT,
    pb.SLOT_NAME_MEMORY: SlotName.MEMORY,
}

_Put = pb.PutSystemPromptRequest | pb.PutInsightRequest | pb.PutMemoryRequest


def slot_message(slot: Slot) -> pb.Slot:
    """Writes a slot."""
    return pb.Slot(
        content=slot.content,
        version=slot.version,
        updated_at=None if slot.updated_at is None else moment_message(slot.updated_at),
    )


def slot_put(request: _Put, name: SlotName) -> SlotWrite:
    """Reads what is to be written to a slot."""
    return SlotWrite(
        session_id=request.session_id,
        name=name,
        content=request.content if request.HasField("content") else None,
        expected_version=request.expected_version if request.HasField("expected_version") else None,
    )


def slot_clear(request: pb.ClearInsightRequest) -> SlotWrite:
    """Reads which insight is to be unset."""
    return SlotWrite(
        session_id=request.session_id,
        name=SlotName.INSIGHT,
        content=None,
        expected_version=request.expected_version if request.HasField("expected_version") else None,
    )


def slot_names(request: pb.BatchGetSlotsRequest) -> list[SlotName]:
    """Reads which slots are wanted; none named: the usual ones."""
    return [known(_NAMES, name, f"slots[{place}]") for place, name in enumerate(request.slots)]


def batch_messages(batches: Iterator[SlotBatch]) -> Iterator[pb.BatchGetSlotsResponse]:
    """Writes the slots of many sessions, a message per batch."""
    for batch in batches:
        yield pb.BatchGetSlotsResponse(
            sessions=map(_session_slots, batch.sessions), missing_session_ids=batch.missing_session_ids
        )


def _session_slots(found: SessionSlots) -> pb.SessionSlots:
    messages = {name: slot_message(slot) for name, slot in found.slots.items()}
    return pb.SessionSlots(
        session_id=found.session_id,
        system_prompt=messages.get(SlotName.SYSTEM_PROMPT),
        insight=messages.get(SlotName.INSIGHT),
        memory=messages.get(SlotName.MEMORY),
    )
