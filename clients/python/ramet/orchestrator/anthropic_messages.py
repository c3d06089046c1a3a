"""A model behind a client of Anthropic's shape: ``client.messages.create``."""

import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ramet.client import Record, Role, ToolCall, Usage
from ramet.orchestrator.models import ModelDelta, ModelReply, Tool
from ramet.orchestrator.openai_chat import told_usage

__all__ = ["AnthropicMessages"]

_PARTS = {"text", "image", "document"}
_THINKING = {"thinking", "redacted_thinking"}
_FIRST_WORD = "Begin."
"""Said for the user where a conversation begins with the assistant, as a fork with an opening prompt does."""


class AnthropicMessages:
    """Asks a messages endpoint; ``AnthropicMessages(anthropic.AsyncAnthropic(), "claude-x", max_tokens=8192)``.

    Any client of this shape will do; the package itself is not needed. All system records are sent as the one system
    text. What the model thinks is kept in ``parts_json``, since it wants to see that again with the answers of tools.
    """

    def __init__(
        self, client: Any, model: str, *, max_tokens: int = 4096, provider: str = "anthropic", **options: Any
    ) -> None:
        """Takes the client, the model's name, the most tokens of an answer, and what else every call is to say."""
        self.name = model
        """The model."""
        self.provider = provider
        """Who serves it, for the recorder."""
        self._client = client
        self._options = {"max_tokens": max_tokens, **options}

    async def __call__(self, messages: Sequence[Record], tools: Sequence[Tool]) -> ModelReply:
        """Asks once, for an answer in one piece."""
        answer = await self._client.messages.create(**self._request(messages, tools))
        blocks = [_Block.of(each) for each in answer.content]
        return ModelReply(
            text="".join(each.text for each in blocks),
            tool_calls=_calls(blocks),
            usage=told_usage(answer),
            thought="".join(each.thought for each in blocks),
            parts_json=_parts(blocks),
            model=answer.model or "",
        )

    async def stream(self, messages: Sequence[Record], tools: Sequence[Tool]) -> AsyncGenerator[ModelDelta, None]:
        """Asks once, for an answer part by part."""
        events = await self._client.messages.create(**self._request(messages, tools), stream=True)
        blocks: dict[int, _Block] = {}
        usage: Usage | None = None
        try:
            async for event in events:
                if event.type == "message_start":
                    usage = told_usage(event)
                    yield ModelDelta(model=event.message.model or "")
                elif event.type == "content_block_start":
                    block = blocks[event.index] = _Block.of(event.content_block)
                    yield ModelDelta(block.text, thought=block.thought)
                elif event.type == "content_block_delta":
                    yield blocks[event.index].add(event.delta)
                elif event.type == "message_delta":
                    usage = _with_output(usage, told_usage(event))
        finally:
            await events.close()
        whole = [blocks[index] for index in sorted(blocks)]
        yield ModelDelta(tool_calls=_calls(whole), usage=usage, parts_json=_parts(whole))

    def _request(self, messages: Sequence[Record], tools: Sequence[Tool]) -> dict[str, Any]:
        request = {"model": self.name, "messages": _messages(messages), **self._options}
        system = "\n\n".join(each.content for each in messages if each.role is Role.SYSTEM and each.content)
        if system:
            request["system"] = system
        if tools:
            request["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}
                for tool in tools
            ]
        return request


@dataclass
class _Block:
    """A part of an answer's content."""

    kind: str
    text: str = ""
    thought: str = ""
    call: ToolCall | None = None
    input_json: str = ""
    kept: dict[str, Any] = field(default_factory=dict)
    """What the model wants to see again, as it told it."""

    @classmethod
    def of(cls, block: Any) -> "_Block":
        made = cls(block.type)
        if block.type == "text":
            made.text = block.text
        elif block.type == "tool_use":
            made.call = ToolCall(block.id, block.name)
            # A stream begins with an empty object and tells the arguments afterwards.
            made.input_json = json.dumps(block.input, ensure_ascii=False) if block.input else ""
        elif block.type == "thinking":
            made.thought = block.thinking
            made.kept = {"type": "thinking", "thinking": block.thinking, "signature": block.signature}
        elif block.type == "redacted_thinking":
            made.kept = {"type": "redacted_thinking", "data": block.data}
        return made

    def add(self, delta: Any) -> ModelDelta:
        if delta.type == "text_delta":
            self.text += delta.text
            return ModelDelta(delta.text)
        if delta.type == "input_json_delta":
            self.input_json += delta.partial_json
        elif delta.type == "thinking_delta":
            self.kept["thinking"] += delta.thinking
            return ModelDelta(thought=delta.thinking)
        elif delta.type == "signature_delta":
            self.kept["signature"] = delta.signature
        return ModelDelta()


def _calls(blocks: Sequence[_Block]) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall(each.call.id, each.call.name, each.input_json or "{}") for each in blocks if each.call is not None
    )


def _parts(blocks: Sequence[_Block]) -> str | None:
    kept = [each.kept for each in blocks if each.kept]
    return json.dumps(kept, ensure_ascii=False) if kept else None


def _with_output(start: Usage | None, end: Usage | None) -> Usage | None:
    """Joins what the first event tells of the input with what the last one tells of the output."""
    if start is None or end is None:
        return start or end
    inputs = start.input_tokens if start.input_tokens is not None else end.input_tokens
    return Usage(inputs, start.cached_tokens, end.output_tokens)


def _messages(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Makes messages of both roles in turn: answers of tools are the user's, all of one round in one message."""
    messages: list[dict[str, Any]] = []
    for record in records:
        if record.role is Role.SYSTEM or not (blocks := _blocks(record)):
            continue
        role = "assistant" if record.role is Role.ASSISTANT else "user"
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
    if messages and messages[0]["role"] == "assistant":
        messages.insert(0, {"role": "user", "content": [{"type": "text", "text": _FIRST_WORD}]})
    return messages


def _blocks(record: Record) -> list[dict[str, Any]]:
    text = [{"type": "text", "text": record.content}] if record.content else []
    if record.role is Role.TOOL:
        result = {"type": "tool_result", "tool_use_id": record.tool_call_id, "content": text}
        return [{**result, "is_error": True} if _is_error(record) else result]
    parts = json.loads(record.parts_json) if record.parts_json else []
    if not isinstance(parts, list) or not all(isinstance(each, dict) for each in parts):
        parts = []
    if record.role is Role.ASSISTANT:
        thinking = [each for each in parts if each.get("type") in _THINKING]
        return [*thinking, *text, *map(_tool_use, record.tool_calls)]
    return parts if parts and all(each.get("type") in _PARTS for each in parts) else text


def _tool_use(each: ToolCall) -> dict[str, Any]:
    arguments = json.loads(each.arguments_json) if each.arguments_json else {}
    return {
        "type": "tool_use",
        "id": each.id,
        "name": each.name,
        # Arguments that were no object are kept as they were; this provider takes objects alone.
        "input": arguments if isinstance(arguments, dict) else {"arguments": arguments},
    }


def _is_error(record: Record) -> bool:
    told = json.loads(record.metadata_json) if record.metadata_json else None
    return isinstance(told, dict) and told.get("is_error") is True
