"""Stands for the models of two providers: answers from a script, in their shapes, without a network."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ramet.recorder import Usage


class ModelDownError(Exception):
    """The provider does not answer."""


@dataclass(frozen=True)
class Call:
    """A tool that the model wants called."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Reply:
    """One line of a script: what the model answers next."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thought: str = ""
    tokens: tuple[int, int, int] | None = None
    """Input, those of it that came from a cache, and output; None: this answer tells none."""
    down: bool = False
    """The provider fails instead."""


class ScriptedModel:
    """A model of one agent; ``shape`` is that of its provider's answers, openai or anthropic."""

    def __init__(self, name: str, shape: str, script: Iterable[Reply]) -> None:
        self.name = name
        self.shape = shape
        self._script = iter(script)

    async def complete(self, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Answers, in one piece."""
        reply = await self._next(messages)
        return self._openai(reply) if self.shape == "openai" else self._anthropic(reply)

    async def stream(self, messages: Sequence[Mapping[str, Any]]) -> AsyncIterator[dict[str, Any]]:
        """Answers word by word, and never comes to an end: somebody will have to leave."""
        reply = await self._next(messages)
        for word in reply.text.split():
            await asyncio.sleep(0)
            yield {"model": self.name, "choices": [{"delta": {"content": f"{word} "}}]}
        await asyncio.Event().wait()

    async def _next(self, messages: Sequence[Mapping[str, Any]]) -> Reply:
        if not messages:
            raise ValueError("a model needs messages")
        await asyncio.sleep(0.002)
        reply = next(self._script)
        if reply.down:
            raise ModelDownError("503 from the provider")
        return reply

    def _openai(self, reply: Reply) -> dict[str, Any]:
        calls = [
            {
                "id": f"call_{at}",
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
            }
            for at, call in enumerate(reply.calls)
        ]
        message = {"role": "assistant", "content": reply.text, "tool_calls": calls, "reasoning": reply.thought}
        answer: dict[str, Any] = {"model": self.name, "choices": [{"message": message}]}
        if reply.tokens is not None:
            inputs, cached, outputs = reply.tokens
            answer["usage"] = {
                "prompt_tokens": inputs,
                "prompt_tokens_details": {"cached_tokens": cached},
                "completion_tokens": outputs,
                "total_tokens": inputs + outputs,
            }
        return answer

    def _anthropic(self, reply: Reply) -> dict[str, Any]:
        content: list[dict[str, Any]] = [{"type": "thinking", "thinking": reply.thought}] if reply.thought else []
        content.append({"type": "text", "text": reply.text})
        content += [{"type": "tool_use", "name": call.name, "input": dict(call.arguments)} for call in reply.calls]
        answer: dict[str, Any] = {"model": self.name, "content": content}
        if reply.tokens is not None:
            inputs, cached, outputs = reply.tokens
            # This provider counts what came from its cache beside the input.
            answer["usage"] = {
                "input_tokens": inputs - cached,
                "cache_read_input_tokens": cached,
                "output_tokens": outputs,
            }
        return answer


def read(answer: Mapping[str, Any]) -> Reply:
    """Reads an answer of either shape; tokens are the recorder's business."""
    if "choices" in answer:
        message = answer["choices"][0]["message"]
        functions = [call["function"] for call in message["tool_calls"]]
        calls = [Call(function["name"], json.loads(function["arguments"])) for function in functions]
        return Reply(message["content"], tuple(calls), message["reasoning"])
    parts = answer["content"]
    return Reply(
        "".join(part["text"] for part in parts if part["type"] == "text"),
        tuple(Call(part["name"], part["input"]) for part in parts if part["type"] == "tool_use"),
        "".join(part["thinking"] for part in parts if part["type"] == "thinking"),
    )


def cost_micros(_model: str, usage: Usage) -> int | None:
    """Prices a call: 3 dollars a million tokens in, 15 out; None where the tokens are unknown."""
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    return 3 * usage.input_tokens + 15 * usage.output_tokens
