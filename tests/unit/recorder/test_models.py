"""Tokens, as providers tell them. langfuse#12306, openllmetry#627."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from ramet.recorder import AgentLoggingHook, TokenTrackingModel, Usage, usage_of
from ramet.telemetry.v1 import telemetry_pb2 as pb
from tests.unit.recorder.listening import ListeningRecorder

CHAT = {
    "prompt_tokens": 100,
    "completion_tokens": 7,
    "total_tokens": 107,
    "prompt_tokens_details": {"cached_tokens": 40},
}
RESPONSES = {
    "input_tokens": 100,
    "output_tokens": 7,
    "total_tokens": 107,
    "input_tokens_details": {"cached_tokens": 40},
}
ANTHROPIC = {"input_tokens": 50, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 10, "output_tokens": 7}


def thing(value: Any) -> Any:
    """Makes objects of dicts, as the providers' clients return them."""
    if isinstance(value, dict):
        return SimpleNamespace(**{name: thing(each) for name, each in value.items()})
    return value


@pytest.mark.parametrize("make", [dict, thing], ids=["dicts", "objects"])
@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (CHAT, Usage(100, 40, 7, 107)),
        (RESPONSES, Usage(100, 40, 7, 107)),
        (ANTHROPIC, Usage(100, 40, 7, None)),
        ({"input_tokens": 5, "output_tokens": 2}, Usage(5, None, 2, None)),
        ({"prompt_tokens": 5}, Usage(5, None, None, None)),
        ({"prompt_tokens": None, "completion_tokens": None}, None),
        ({}, None),
    ],
)
def test_usage_is_understood_and_what_is_not_told_is_unknown(make: Any, usage: Any, expected: Usage | None) -> None:
    assert usage_of(make({"model": "m", "usage": usage})) == expected
    assert usage_of(make({"model": "m"})) is None


OPENAI_PARTS: list[dict[str, Any]] = [{"usage": None, "model": "m"}, {"usage": None}, {"usage": CHAT, "model": "m"}]
RESPONSES_PARTS: list[dict[str, Any]] = [
    {"type": "x"},
    {"type": "done", "response": {"model": "m", "usage": RESPONSES}},
]
ANTHROPIC_PARTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"model": "m", "usage": {**ANTHROPIC, "output_tokens": 1}}},
    {"type": "content_block_delta"},
    {"type": "message_delta", "usage": {"output_tokens": 7}},
]


@pytest.mark.parametrize(
    "parts", [OPENAI_PARTS, RESPONSES_PARTS, ANTHROPIC_PARTS], ids=["chat", "responses", "anthropic"]
)
async def test_streams_pass_unchanged_and_leave_their_usage_with_the_step(parts: list[dict[str, Any]]) -> None:
    recorder, hook = ListeningRecorder(), AgentLoggingHook("a", provider="p")

    def stream() -> Iterator[Any]:
        yield from parts

    async def async_stream() -> AsyncIterator[Any]:
        for part in parts:
            yield part

    async def awaited() -> AsyncIterator[Any]:
        return async_stream()

    async with recorder.diagnosis("why"):
        hook.before_model("x")
        assert list(TokenTrackingModel(stream)()) == parts
        hook.after_model("y")
        for call in (async_stream, awaited):
            hook.before_model("x")
            got = TokenTrackingModel(call)()
            got = await got if call is awaited else got
            assert [part async for part in got] == parts
            hook.after_model("y")
    steps = recorder.bodies("step_completed")
    assert [(step.model, step.provider) for step in steps] == [("m", "p")] * 3
    for step in steps:
        assert (step.usage.input_tokens, step.usage.cached_tokens, step.usage.output_tokens) == (100, 40, 7)


async def test_plain_calls_and_their_cost() -> None:
    recorder, hook = ListeningRecorder(), AgentLoggingHook("a")

    async def answer() -> Any:
        return {"usage": CHAT}

    def cost(model: str, usage: Usage) -> int:
        return (usage.input_tokens or 0) * 3

    async with recorder.diagnosis("why"):
        hook.before_model("x")
        model = TokenTrackingModel(answer, model="m", cost_micros=cost)
        assert await model() == {"usage": CHAT}
        hook.after_model("y")
        hook.before_model("x")
        assert TokenTrackingModel(lambda: "no usage here")() == "no usage here"
        hook.after_model("y")
    known, unknown = recorder.bodies("step_completed")
    assert known.usage == pb.Usage(
        input_tokens=100, cached_tokens=40, output_tokens=7, total_tokens=107, cost_micros=300
    )
    assert not unknown.HasField("usage")


def test_a_stream_that_is_left_early_ends_its_step_as_cancelled() -> None:
    recorder, hook = ListeningRecorder(), AgentLoggingHook("a")
    with recorder.diagnosis("why"):
        hook.before_model("x")
        stream = TokenTrackingModel(lambda: iter(OPENAI_PARTS))()
        next(stream)
        stream.close()
        hook.after_model("y")
    (step,) = recorder.bodies("step_completed")
    assert step.status == pb.RUN_STATUS_CANCELLED


def test_an_error_of_the_model_is_raised_and_its_step_failed() -> None:
    recorder, hook = ListeningRecorder(), AgentLoggingHook("a")

    def broken() -> Iterator[Any]:
        yield {}
        raise ConnectionError("cut")

    with recorder.diagnosis("why"):
        hook.before_model("x")
        with pytest.raises(ConnectionError):
            list(TokenTrackingModel(broken)())
        hook.after_model("y")
    (step,) = recorder.bodies("step_completed")
    assert (step.status, step.error_message) == (pb.RUN_STATUS_FAILED, "ConnectionError: cut")
