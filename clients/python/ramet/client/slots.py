"""The context slots of SessionStorage from Python."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING

from ramet.client import convert
from ramet.client.arguments import build, each
from ramet.client.calls import Caller, new_request_id
from ramet.client.values import SessionSlots, Slot, SlotName
from ramet.session.v1 import session_pb2 as pb

if TYPE_CHECKING:
    # The type stubs alone know it: at run time it is a SessionStorageStub over an asyncio channel.
    from ramet.session.v1.session_pb2_grpc import SessionStorageAsyncStub

__all__ = ["SlotMethods"]


class SlotMethods:
    """The part of SessionStorageClient that reads and writes context slots."""

    def __init__(self, stub: "SessionStorageAsyncStub", caller: Caller) -> None:
        self._stub = stub
        self._caller = caller

    async def get_system_prompt(self, session_id: str) -> Slot:
        """Reads the system prompt, which every send begins with."""
        request = build(pb.GetSystemPromptRequest, session_id=session_id)
        return convert.slot_in(await self._caller.unary(self._stub.GetSystemPrompt, request))

    async def put_system_prompt(
        self,
        session_id: str,
        content: str | None,
        *,
        expected_version: int | None = None,
        request_id: str | None = None,
    ) -> Slot:
        """Writes the system prompt; None unsets it."""
        request = build(
            pb.PutSystemPromptRequest,
            session_id=session_id,
            content=content,
            expected_version=expected_version,
            request_id=request_id or new_request_id(),
        )
        return convert.slot_in(await self._caller.unary(self._stub.PutSystemPrompt, request))

    async def get_insight(self, session_id: str) -> Slot:
        """Reads the insight, a one-time inbox for the next turn."""
        request = build(pb.GetInsightRequest, session_id=session_id)
        return convert.slot_in(await self._caller.unary(self._stub.GetInsight, request))

    async def put_insight(
        self, session_id: str, content: str, *, expected_version: int | None = None, request_id: str | None = None
    ) -> Slot:
        """Writes the insight, replacing one that was not consumed."""
        request = build(
            pb.PutInsightRequest,
            session_id=session_id,
            content=content,
            expected_version=expected_version,
            request_id=request_id or new_request_id(),
        )
        return convert.slot_in(await self._caller.unary(self._stub.PutInsight, request))

    async def clear_insight(
        self, session_id: str, *, expected_version: int | None = None, request_id: str | None = None
    ) -> Slot:
        """Unsets the insight. A turn consumes it by ``append_records(consume_insight_version=...)`` instead."""
        request = build(
            pb.ClearInsightRequest,
            session_id=session_id,
            expected_version=expected_version,
            request_id=request_id or new_request_id(),
        )
        return convert.slot_in(await self._caller.unary(self._stub.ClearInsight, request))

    async def get_memory(self, session_id: str) -> Slot:
        """Reads the memory, the session as others see it. It never enters the session's own context."""
        request = build(pb.GetMemoryRequest, session_id=session_id)
        return convert.slot_in(await self._caller.unary(self._stub.GetMemory, request))

    async def put_memory(
        self,
        session_id: str,
        content: str | None,
        *,
        expected_version: int | None = None,
        request_id: str | None = None,
    ) -> Slot:
        """Writes the memory; None unsets it."""
        request = build(
            pb.PutMemoryRequest,
            session_id=session_id,
            content=content,
            expected_version=expected_version,
            request_id=request_id or new_request_id(),
        )
        return convert.slot_in(await self._caller.unary(self._stub.PutMemory, request))

    async def batch_get_slots(
        self, session_ids: Iterable[str], slots: Iterable[SlotName] = (SlotName.INSIGHT, SlotName.MEMORY)
    ) -> AsyncGenerator[SessionSlots, None]:
        """Yields the slots of 1 to 10,000 sessions in the order asked for; unknown ids are left out."""
        request = build(
            pb.BatchGetSlotsRequest, session_ids=session_ids, slots=each(convert.slot_name_out, slots, "slots")
        )
        async with aclosing(self._caller.stream(self._stub.BatchGetSlots, request)) as replies:
            async for reply in replies:
                for message in reply.sessions:
                    yield convert.slots_in(message)
