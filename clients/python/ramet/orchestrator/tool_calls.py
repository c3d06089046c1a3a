"""Calls of tools: what a model asks for becomes calls that can be kept, and each is answered, whatever happens."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ramet.client import Record, Role, ToolCall
from ramet.client.calls import new_request_id
from ramet.orchestrator.calling import call
from ramet.orchestrator.models import Tool
from ramet.orchestrator.storable import is_storable_json, storable_text
from ramet.recorder import note_output, record_tool

__all__ = ["MAX_CALLS", "RESULT_CHARACTERS", "answer_all", "keepable_calls"]

MAX_CALLS = 128
"""Most calls of one answer: what one record may hold."""

RESULT_CHARACTERS = 250_000
"""Longest result, in code points, so that a record of it fits; what is longer is cut and marked."""

_NAME = 256
_ERROR = '{"is_error": true}'


class _Unusable(Exception):
    """A call that comes to no tool; its text is for the model."""


@dataclass(frozen=True)
class _Request:
    """A call with its arguments as the tool takes them."""

    call: ToolCall
    tool: Tool | None
    arguments: Mapping[str, Any]
    fault: str


def keepable_calls(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """Returns the calls as a record can hold them.

    Models make up ids that come twice or are empty, and arguments that are no JSON; such an id is replaced, such
    arguments are kept as one JSON text.
    """
    kept: list[ToolCall] = []
    for each in calls:
        call_id = storable_text(str(each.id or ""))[:_NAME]
        if not call_id or any(call_id == other.id for other in kept):
            call_id = f"call_{new_request_id()}"
        arguments = each.arguments_json or None
        if arguments is not None and not is_storable_json(arguments):
            arguments = json.dumps(storable_text(str(arguments)), ensure_ascii=False)
        kept.append(ToolCall(call_id, storable_text(str(each.name or ""))[:_NAME] or "unknown", arguments))
    return tuple(kept)


async def answer_all(
    calls: Sequence[ToolCall],
    tools: Sequence[Tool],
    answered: Callable[[ToolCall, Record], Awaitable[None]],
) -> tuple[Record, ...]:
    """Runs the calls at the same time and returns their answers in the order of the calls.

    A tool that raises, one that is not there and arguments that do not fit are answered with an error for the model.
    """
    known = {tool.name: tool for tool in tools}

    async def answer(each: ToolCall) -> Record:
        record = await _answer(_request(each, known))
        await answered(each, record)
        return record

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(answer(each)) for each in calls]
    return tuple(task.result() for task in tasks)


def _request(each: ToolCall, known: Mapping[str, Tool]) -> _Request:
    tool = known.get(each.name)
    if tool is None:
        names = ", ".join(known) or "none"
        return _Request(
            each, None, {"arguments": each.arguments_json}, f"there is no tool {each.name!r}; known: {names}"
        )
    arguments = json.loads(each.arguments_json) if each.arguments_json else {}
    if not isinstance(arguments, dict):
        return _Request(each, tool, {"arguments": arguments}, "the arguments are not a JSON object")
    return _Request(each, tool, arguments, "")


async def _answer(request: _Request) -> Record:
    run = record_tool(name=request.call.name)(_runner(request))
    try:
        text, metadata = await run(**request.arguments), None
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        # Nobody cancels the turn: the tool gave up something of its own.
        text, metadata = _told(error), _ERROR
    except Exception as error:  # noqa: BLE001 - whatever a tool raises is for the model to know
        text, metadata = _told(error), _ERROR
    return Record(
        Role.TOOL,
        text,
        tool_call_id=request.call.id,
        name=request.call.name,
        metadata_json=metadata,
        client_time=datetime.now(UTC),
    )


def _runner(request: _Request) -> Callable[..., Awaitable[str]]:
    async def run(**arguments: Any) -> str:
        if request.tool is None or request.fault:
            raise _Unusable(request.fault)
        result = await call(request.tool.function, **arguments)
        whole = result if isinstance(result, str) else "" if result is None else json.dumps(result, ensure_ascii=False)
        if len(whole) <= RESULT_CHARACTERS:
            return storable_text(whole)
        note_output(whole)
        return _cut(whole)

    return run


def _told(error: BaseException) -> str:
    kind = "" if isinstance(error, _Unusable) else type(error).__name__
    return _cut(": ".join(part for part in ("Error", kind, str(error)) if part))


def _cut(text: str) -> str:
    if len(text) <= RESULT_CHARACTERS:
        return storable_text(text)
    mark = f"\n[cut: {len(text)} characters in all]"
    return storable_text(text[: RESULT_CHARACTERS - len(mark)]) + mark
