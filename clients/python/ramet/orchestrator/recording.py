"""A turn as a recorder keeps it: each call of the model a step, each call of a tool an invocation of that step."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Any

from ramet.client import Record, ToolCall, Usage
from ramet.orchestrator.models import Model, ModelReply
from ramet.recorder import AgentLoggingHook, Recorder, Status, current_diagnosis
from ramet.recorder import Usage as RecordedUsage

__all__ = ["TurnRecording"]

_FLOW = "CHAT"


class TurnRecording:
    """Records one turn into the diagnosis in scope; without one, into a diagnosis of its own where a recorder is given.

    Outside both it does nothing.
    """

    def __init__(self, recorder: Recorder | None, session_id: str, agent: str | None, model: Model) -> None:
        self._recorder = recorder
        self._session_id = session_id
        name, provider = (str(getattr(model, each, "") or "") for each in ("name", "provider"))
        self._hook = AgentLoggingHook(agent or "assistant", model=name, provider=provider)

    @asynccontextmanager
    async def turn(self, message: Record) -> AsyncGenerator[None, None]:
        """Holds the turn; afterwards the step is current again that was so before."""
        own = None
        if self._recorder is not None and current_diagnosis() is None:
            own = self._recorder.diagnosis(message.content, agent_flow=_FLOW, conversation_id=self._session_id)
        async with own or nullcontext():
            with self._hook:
                yield

    @asynccontextmanager
    async def model_call(self, messages: Sequence[Record]) -> AsyncGenerator["_Answer", None]:
        """Holds one call of the model, whose reply is to be left with what it yields."""
        answer = _Answer()
        if current_diagnosis() is None:
            yield answer
            return
        step = self._hook.before_model([_message(each) for each in messages])
        try:
            yield answer
        except BaseException as error:
            # Stopped from outside is not failed.
            failed = isinstance(error, Exception)
            status = Status.FAILED if failed else Status.CANCELLED
            self._hook.after_model(error=error if failed else "", status=status, step=step)
            raise
        reply = answer.reply
        if step is not None and reply.model:
            step.model = reply.model
        self._hook.after_model(
            reply.text,
            tool_calls=[_call(each) for each in reply.tool_calls],
            thought=reply.thought,
            usage=None if reply.usage is None else _usage(reply.usage),
            step=step,
        )


class _Answer:
    """Where a reply is left."""

    reply: ModelReply = ModelReply()


def _message(record: Record) -> dict[str, Any]:
    told: dict[str, Any] = {"role": record.role.value, "content": record.content}
    if record.tool_calls:
        told["tool_calls"] = [_call(each) for each in record.tool_calls]
    return told


def _call(each: ToolCall) -> dict[str, Any]:
    return {"name": each.name, "arguments": each.arguments_json or ""}


def _usage(usage: Usage) -> RecordedUsage:
    return RecordedUsage(
        usage.input_tokens, usage.cached_tokens, usage.output_tokens, usage.total_tokens, usage.cost_micros
    )
