"""A model behind a client of OpenAI's shape: ``client.chat.completions.create``, as many other providers serve it."""

import json
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any

from ramet.client import Record, Role, ToolCall, Usage
from ramet.orchestrator.models import ModelDelta, ModelReply, Tool
from ramet.recorder import usage_of

__all__ = ["OpenAIChat", "told_usage"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PARTS = {"text", "image_url", "input_audio", "file"}


class OpenAIChat:
    """Asks a chat completions endpoint; ``OpenAIChat(openai.AsyncOpenAI(), "gpt-x", temperature=0)``.

    Any client of this shape will do; the package itself is not needed. A record's ``parts_json`` is sent as content
    where it is a list of parts that this provider knows.
    """

    def __init__(self, client: Any, model: str, *, provider: str = "openai", **options: Any) -> None:
        """Takes the client, the model's name, who serves it, and what else every call is to say."""
        self.name = model
        """The model."""
        self.provider = provider
        """Who serves it, for the recorder."""
        self._client = client
        self._options = options

    async def __call__(self, messages: Sequence[Record], tools: Sequence[Tool]) -> ModelReply:
        """Asks once, for an answer in one piece."""
        answer = await self._client.chat.completions.create(**self._request(messages, tools))
        message = answer.choices[0].message
        return ModelReply(
            text=message.content or getattr(message, "refusal", None) or "",
            tool_calls=tuple(
                ToolCall(each.id, each.function.name, each.function.arguments)
                for each in message.tool_calls or ()
                if getattr(each, "function", None) is not None
            ),
            usage=told_usage(answer),
            thought=_thought(message),
            model=answer.model or "",
        )

    async def stream(self, messages: Sequence[Record], tools: Sequence[Tool]) -> AsyncGenerator[ModelDelta, None]:
        """Asks once, for an answer part by part."""
        request = self._request(messages, tools)
        request |= {"stream": True, "stream_options": {"include_usage": True}}
        chunks = await self._client.chat.completions.create(**request)
        calls: dict[int, _Call] = {}
        try:
            async for chunk in chunks:
                for choice in chunk.choices[:1]:
                    delta = choice.delta
                    for part in delta.tool_calls or ():
                        calls.setdefault(part.index, _Call()).add(part)
                    text = delta.content or getattr(delta, "refusal", None) or ""
                    yield ModelDelta(text, thought=_thought(delta), model=chunk.model or "")
                if (usage := told_usage(chunk)) is not None:
                    yield ModelDelta(usage=usage)
        finally:
            await chunks.close()
        yield ModelDelta(tool_calls=tuple(calls[index].whole() for index in sorted(calls)))

    def _request(self, messages: Sequence[Record], tools: Sequence[Tool]) -> dict[str, Any]:
        request = {"model": self.name, "messages": [_message(each) for each in messages], **self._options}
        if tools:
            request["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": dict(tool.parameters),
                    },
                }
                for tool in tools
            ]
        return request


def told_usage(answer: object) -> Usage | None:
    """Returns the tokens that an answer, or a part of one, tells."""
    found = usage_of(answer)
    return (
        None
        if found is None
        else Usage(found.input_tokens, found.cached_tokens, found.output_tokens, found.total_tokens)
    )


@dataclass
class _Call:
    """A call of a tool as it streams: id and name come once, the arguments in pieces."""

    id: str = ""
    name: str = ""
    arguments: str = ""

    def add(self, part: Any) -> None:
        self.id = part.id or self.id
        if part.function is not None:
            self.name = part.function.name or self.name
            self.arguments += part.function.arguments or ""

    def whole(self) -> ToolCall:
        return ToolCall(self.id, self.name, self.arguments)


def _message(record: Record) -> dict[str, Any]:
    message: dict[str, Any] = {"role": record.role.value, "content": _content(record)}
    if record.role is Role.TOOL:
        message["tool_call_id"] = record.tool_call_id
    elif record.name and _NAME.fullmatch(record.name):
        message["name"] = record.name
    if record.tool_calls:
        message["content"] = message["content"] or None
        message["tool_calls"] = [
            {
                "id": each.id,
                "type": "function",
                "function": {"name": each.name, "arguments": each.arguments_json or "{}"},
            }
            for each in record.tool_calls
        ]
    return message


def _content(record: Record) -> Any:
    if record.parts_json and record.role is Role.USER:
        parts = json.loads(record.parts_json)
        if (
            isinstance(parts, list)
            and parts
            and all(isinstance(each, dict) and each.get("type") in _PARTS for each in parts)
        ):
            return parts
    return record.content


def _thought(holder: object) -> str:
    # Not in OpenAI's own shape, but what several providers of that shape add.
    for name in ("reasoning_content", "reasoning"):
        thought = getattr(holder, name, None)
        if isinstance(thought, str):
            return thought
    return ""
