"""One turn of a session: context read once, the model and its tools in rounds, everything appended at once."""

import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import grpc

from ramet.client import (
    AlreadyExists,
    Appended,
    Client,
    Context,
    FailedPrecondition,
    NotFound,
    Record,
    Role,
    SessionStatus,
    Usage,
)
from ramet.client.arguments import of_kind, refused
from ramet.orchestrator.config import Runtime
from ramet.orchestrator.context import history_of, messages_of, read_context
from ramet.orchestrator.models import Model, ModelDelta, ModelReply
from ramet.orchestrator.recording import TurnRecording
from ramet.orchestrator.repeating import took_effect
from ramet.orchestrator.replies import Reply, TextDelta, ThoughtDelta, ToolAnswered, ToolCalled, TurnEvent
from ramet.orchestrator.steps import Steps
from ramet.orchestrator.storable import storable_text
from ramet.orchestrator.tool_calls import MAX_CALLS, answer_all, keepable_calls
from ramet.recorder import Recorder

__all__ = ["DEFAULT_MAX_ROUNDS", "Turn"]

DEFAULT_MAX_ROUNDS = 16

_KEY = "ramet_turn"
"""Under this the last record of a turn tells, in its metadata_json, the turn's request id and how many they are."""

_SEARCHED = 10_000
"""How far back a turn that took effect is looked for, in records."""

Tell = Callable[[TurnEvent], Awaitable[None]]


@dataclass(frozen=True)
class Turn:
    """What one turn is made of."""

    client: Client
    recorder: Recorder | None
    session_id: str
    runtime: Runtime
    model: Model
    message: Record
    steps: Steps
    tell: Tell
    """Is told what happens, and waited for."""
    streams: bool
    """Whether a model that can stream does."""

    async def run(self) -> Reply:
        """Runs the turn; nothing is written unless all of it succeeds."""
        append_id = self.steps.id_of("append")
        if self.steps.repeatable and await took_effect(self.client, self.session_id, append_id):
            return await self._written()
        context = await read_context(self.client, self.session_id, self.runtime)
        if context.session.status is SessionStatus.ARCHIVED:
            raise _failed("SESSION_ARCHIVED", "The session is archived: restore it before a send.")
        recording = TurnRecording(self.recorder, self.session_id, self.runtime.agent, self.model)
        message = replace(self.message, client_time=self.message.client_time or datetime.now(UTC))
        async with recording.turn(message):
            history = await history_of(context, self.runtime)
            records, usages = await self._rounds(recording, messages_of(context, history, message))
            return await self._append(append_id, context, [message, *records], usages)

    async def _rounds(
        self, recording: TurnRecording, messages: list[Record]
    ) -> tuple[list[Record], tuple[Usage | None, ...]]:
        tools = tuple(self.runtime.tools or ())
        records: list[Record] = []
        usages: list[Usage | None] = []
        most = self.runtime.max_rounds or DEFAULT_MAX_ROUNDS
        for number in range(1, most + 1):
            sent = [*messages, *records]
            async with recording.model_call(sent) as answer:
                answer.reply = reply = await self._ask(sent, number)
            usages.append(reply.usage)
            said = Record(
                Role.ASSISTANT,
                reply.text,
                tool_calls=reply.tool_calls,
                parts_json=reply.parts_json,
                client_time=datetime.now(UTC),
            )
            records.append(said)
            if not said.tool_calls:
                return records, tuple(usages)
            if number < most:
                for each in said.tool_calls:
                    await self.tell(ToolCalled(each))
                records += await answer_all(
                    said.tool_calls, tools, lambda each, record: self.tell(ToolAnswered(each, record))
                )
        raise _failed("TOO_MANY_ROUNDS", f"The model still calls tools after {most} rounds; nothing was written.")

    async def _ask(self, messages: Sequence[Record], number: int) -> ModelReply:
        tools = tuple(self.runtime.tools or ())
        stream = getattr(self.model, "stream", None) if self.streams else None
        answer = (stream or self.model)(messages, tools)
        if isinstance(answer, AsyncIterator):
            reply = await self._collected(answer, number)
        elif inspect.isawaitable(answer):
            reply = of_kind(ModelReply, await answer, "model")
            of_kind(str, reply.text, "model")
            await self._tell_parts(ModelDelta(reply.text, thought=reply.thought), number)
        else:
            raise refused("model", f"must be asynchronous, and answered with {type(answer).__name__}")
        if len(reply.tool_calls) > MAX_CALLS:
            raise _failed("TOO_MANY_TOOL_CALLS", f"The model calls more than {MAX_CALLS} tools at once.")
        return replace(reply, text=storable_text(reply.text), tool_calls=keepable_calls(reply.tool_calls))

    async def _collected(self, deltas: AsyncIterator[ModelDelta], number: int) -> ModelReply:
        whole = ModelReply()
        texts: list[str] = []
        thoughts: list[str] = []
        async with AsyncExitStack() as stack:
            close = getattr(deltas, "aclose", None)
            if close is not None:
                stack.push_async_callback(close)
            async for delta in deltas:
                of_kind(ModelDelta, delta, "model")
                texts.append(delta.text)
                thoughts.append(delta.thought)
                whole = replace(
                    whole,
                    tool_calls=whole.tool_calls + tuple(delta.tool_calls),
                    usage=delta.usage or whole.usage,
                    parts_json=delta.parts_json or whole.parts_json,
                    model=delta.model or whole.model,
                )
                await self._tell_parts(delta, number)
        return replace(whole, text="".join(texts), thought="".join(thoughts))

    async def _tell_parts(self, delta: ModelDelta, number: int) -> None:
        if delta.thought:
            await self.tell(ThoughtDelta(delta.thought, number))
        if delta.text:
            await self.tell(TextDelta(delta.text, number))

    async def _append(
        self, append_id: str, context: Context, records: list[Record], usages: tuple[Usage | None, ...]
    ) -> Reply:
        told = {_KEY: {"request_id": self.steps.operation, "records": len(records)}}
        records[-1] = replace(records[-1], metadata_json=json.dumps(told))
        read = context.insight.content is not None
        try:
            appended = await self.client.sessions.append_records(
                self.session_id,
                records,
                expected_head_seq=context.session.head_seq,
                consume_insight_version=context.insight.version if read else None,
                turn_delta=1,
                request_id=append_id,
            )
        except AlreadyExists as error:
            if error.reason != "REQUEST_ID_REUSED":
                raise
            # Another attempt of this very turn was faster; what it wrote stands, whatever ours would say.
            return await self._written()
        return Reply(
            text=records[-1].content,
            records=_with_seqs(records, appended),
            request_id=self.steps.operation,
            session=appended.session,
            usages=usages,
            insight_consumed=appended.insight_consumed,
            newer_insight=read and not appended.insight_consumed,
            older_left_out=context.older_left_out,
            incomplete_records=context.incomplete_records,
        )

    async def _written(self) -> Reply:
        """Finds the turn that an earlier attempt wrote."""
        newest_first = self.client.sessions.iter_records(self.session_id, descending=True)
        count, records = 0, []
        searched = 0
        try:
            async for record in newest_first:
                searched += 1
                count = count or _turn_size(record, self.steps.operation)
                if count:
                    records.append(record)
                if len(records) == max(count, 1) or searched == _SEARCHED:
                    break
        finally:
            await newest_first.aclose()
        if not records or len(records) < count:
            raise NotFound(
                "This turn was written before, and its records are gone since.",
                code=grpc.StatusCode.NOT_FOUND,
                reason="RECORD_NOT_FOUND",
            )
        records.reverse()
        if records[0].content != self.message.content:
            raise AlreadyExists(
                "This request id was used for a turn with another message.",
                code=grpc.StatusCode.ALREADY_EXISTS,
                reason="REQUEST_ID_REUSED",
            )
        session = await self.client.sessions.get_session(self.session_id)
        return Reply(records[-1].content, tuple(records), self.steps.operation, session, repeated=True)


def _failed(reason: str, message: str) -> FailedPrecondition:
    return FailedPrecondition(message, code=grpc.StatusCode.FAILED_PRECONDITION, reason=reason)


def _with_seqs(records: Sequence[Record], appended: Appended) -> tuple[Record, ...]:
    return tuple(replace(record, seq=seq) for record, seq in zip(records, appended.seqs, strict=True))


def _turn_size(record: Record, request_id: str) -> int:
    """Returns how many records a turn has whose last one this is; 0 where it is not."""
    if record.metadata_json is None or _KEY not in record.metadata_json:
        return 0
    try:
        told: dict[str, Any] = json.loads(record.metadata_json)[_KEY]
        return int(told["records"]) if told["request_id"] == request_id else 0
    except (ValueError, TypeError, LookupError):
        # Somebody else's metadata may hold the same word.
        return 0
