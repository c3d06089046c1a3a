"""What was said, in the shape of messages that the conventions give: told only on demand."""

import json
from collections.abc import Iterator
from typing import Any

from ramet.client import AgentStep, RunStatus

__all__ = ["input_messages", "output_messages", "query_text", "question"]


def question(query: str) -> str | None:
    """Makes the messages that a diagnosis was asked with."""
    return _dumps([{"role": "user", "parts": [{"type": "text", "content": query}]}]) if query else None


def input_messages(step: AgentStep) -> str | None:
    """Makes the messages of a model's input, as far as its summary tells them; None where it is of another shape."""
    summary = _loads(step.model_input_json)
    if not isinstance(summary, list):
        return None
    messages = [
        {"role": message["role"], "parts": list(_parts(message, "content"))}
        for message in summary
        if isinstance(message, dict) and isinstance(message.get("role"), str)
    ]
    return _dumps(messages) if messages else None


def output_messages(step: AgentStep) -> str | None:
    """Makes the one message of a model's output, its thought first; None where nothing is known of it."""
    parts: list[dict[str, Any]] = [{"type": "reasoning", "content": step.thought}] if step.thought else []
    summary = _loads(step.model_output_json)
    if isinstance(summary, dict):
        parts += _parts(summary, "text")
    if not parts:
        return None
    return _dumps([{"role": "assistant", "parts": parts, "finish_reason": _finish_reason(step)}])


def query_text(input_params_json: str) -> str | None:
    """Finds what a knowledge lookup asked for, an argument ``query`` or ``question``; None where there is none."""
    params = _loads(input_params_json)
    if not isinstance(params, dict):
        return None
    return next((params[name] for name in ("query", "question") if isinstance(params.get(name), str)), None)


def _parts(summary: dict[str, Any], text_field: str) -> Iterator[dict[str, Any]]:
    text = summary.get(text_field)
    if isinstance(text, str) and text:
        # Where a text was cut is told beside it, as the summary does.
        yield {"type": "text", "content": text} | {k: summary[k] for k in ("truncated", "length") if k in summary}
    calls = summary.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict) and isinstance(call.get("name"), str):
            yield {"type": "tool_call"} | call


def _finish_reason(step: AgentStep) -> str:
    if step.status is RunStatus.FAILED:
        return "error"
    if step.status is RunStatus.SUCCESS:
        return "tool_call" if step.has_tool_call else "stop"
    return str(step.status)


def _loads(text: str | None) -> Any:
    # The contract says that it is JSON; a server of another make is not worth an export that fails.
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
