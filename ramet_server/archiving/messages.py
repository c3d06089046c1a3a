"""Chat messages, as OpenAI and its many followers write them, as records.

Read of a message: ``role`` (system, developer, user, assistant, tool, function), ``content`` (a text, or a list
of parts), ``tool_calls``, ``tool_call_id``, ``name``, the older ``function_call``, and a time in ``timestamp``,
``createdAt``, ``created_at`` or ``create_time``. Names in camelCase count as well. Every other field that has a
value goes to the record's metadata_json as it is, under its own name; a ``metadata`` object becomes that itself.

A list of parts becomes parts_json, and its texts, a line each, the content. Arguments that are no JSON become a
JSON text of what they are. An older function call has no id: it gets one by its place.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from ramet_server.domain.errors import InvalidField, RametError
from ramet_server.domain.json_text import check_json
from session_service.rules.values import Record, Role, ToolCall

_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "human": Role.USER,
    "assistant": Role.ASSISTANT,
    "ai": Role.ASSISTANT,
    "tool": Role.TOOL,
    "function": Role.TOOL,
}
_TIMES = ("timestamp", "createdAt", "created_at", "create_time")
_LARGEST = 1 << 40


def records_of(messages: Iterable[object], now: datetime) -> Iterator[Record]:
    """Yields messages as records with seqs from 1; raises InvalidField that names the message by its place."""
    called: dict[str, str] = {}
    for place, told in enumerate(messages):
        if not isinstance(told, dict):
            raise InvalidField(f"message {place + 1} is no object.", field="messages")
        try:
            yield _record(dict(told), f"call-{place + 1}", called, now)._replace(seq=place + 1)
        except InvalidField as error:
            raise InvalidField(f"message {place + 1}: {error.message}", field="messages") from None


def moment_of(value: object) -> datetime | None:
    """Reads a time as people write it: RFC 3339, or seconds or milliseconds since 1970; None for anything else."""
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def compact(value: object) -> str:
    """Returns a value as JSON text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def taken(told: dict[str, Any], *names: str) -> Any:
    """Takes the first of these fields that has a value; the others stay."""
    for name in names:
        if told.get(name) is not None:
            return told.pop(name)
    return None


def _record(told: dict[str, Any], made_id: str, called: dict[str, str], now: datetime) -> Record:
    role = _ROLES.get(str(told.pop("role", "")).lower())
    if role is None:
        raise InvalidField("it has no role that is known.", field="role")
    content, parts_json = _content(told.pop("content", None))
    calls = [_call(call) for call in taken(told, "tool_calls", "toolCalls") or ()]
    old_call = told.pop("function_call", None)
    if isinstance(old_call, dict):
        calls.append(ToolCall(made_id, str(old_call.get("name", "")), _arguments(old_call.get("arguments"))))
        called[str(old_call.get("name", ""))] = made_id
    name = taken(told, "name")
    call_id = taken(told, "tool_call_id", "toolCallId")
    if role is Role.TOOL and call_id is None:
        call_id = called.get(str(name))
    moment = next(filter(None, (moment_of(told.get(each)) for each in _TIMES)), None)
    for each in _TIMES:
        if moment is not None:
            told.pop(each, None)
    metadata = told.pop("metadata", None)
    rest = {key: value for key, value in told.items() if value is not None and value != []}
    if isinstance(metadata, dict):
        rest = {**metadata, **rest}
    elif metadata is not None:
        rest["metadata"] = metadata
    return Record(
        seq=0,
        role=role,
        content=content,
        parts_json=parts_json,
        tool_calls=tuple(calls),
        tool_call_id=None if call_id is None else str(call_id),
        name=None if name in (None, "") else str(name),
        client_time=None if moment is None else moment.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        metadata_json=compact(rest) if rest else None,
        size_bytes=0,
        created_at=now,
        erased_at=None,
    )


def _content(content: object) -> tuple[str, str | None]:
    if content is None:
        return "", None
    if isinstance(content, str):
        return content, None
    if isinstance(content, list):
        texts = [
            part["text"]
            for part in content
            if isinstance(part, Mapping) and part.get("type") in ("text", "input_text", "output_text")
            if isinstance(part.get("text"), str)
        ]
        return "\n".join(texts), compact(content)
    raise InvalidField("its content is neither a text nor a list.", field="content")


def _call(told: object) -> ToolCall:
    if not isinstance(told, dict):
        raise InvalidField("a tool call is no object.", field="tool_calls")
    inner = told.get("function") or told.get("custom") or told
    if not isinstance(inner, dict):
        raise InvalidField("a tool call names no function.", field="tool_calls")
    arguments = next((inner[name] for name in ("arguments", "input", "args") if inner.get(name) is not None), None)
    return ToolCall(str(told.get("id") or ""), str(inner.get("name") or ""), _arguments(arguments))


def _arguments(arguments: object) -> str:
    if arguments is None or arguments == "":
        return ""
    if not isinstance(arguments, str):
        return compact(arguments)
    try:
        return check_json(arguments, "arguments", _LARGEST)
    except RametError:
        # Models write such; the text is kept as what it is.
        return compact(arguments)
