"""The adapters, with the real clients of two providers, against a stand-in that speaks their wire formats."""

import json
from typing import Any

import anthropic
import openai
import pytest

from ramet import Client, Orchestrator, Record
from ramet.client import Usage
from ramet.orchestrator import AnthropicMessages, OpenAIChat, Reply, Runtime, TextDelta, TurnEvent
from tests.orchestrator.providers import Answer, Provider
from tests.orchestrator.scripted import tool

CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Kyōto"}'}}


def chat(message: dict[str, Any]) -> Answer:
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-test-2026",
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "total_tokens": 15,
            "prompt_tokens_details": {"cached_tokens": 4},
        },
    }


def chunk(delta: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    choices = [{"index": 0, "delta": delta, "finish_reason": None}]
    return "", {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "gpt-test", "choices": choices}


def chunked_usage() -> tuple[str, dict[str, Any]]:
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    told = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "gpt-test"}
    return "", {**told, "choices": [], "usage": usage}


def claude(*content: dict[str, Any]) -> Answer:
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": list(content),
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 4, "cache_read_input_tokens": 2},
    }


@pytest.fixture
async def session_id(orchestrator: Orchestrator) -> str:
    """A session with a prompt."""
    return (await orchestrator.create_root(system_prompt="Be brief.")).id


def runtime(llm: Any) -> Runtime:
    return Runtime(llm=llm, tools=[tool("weather", lambda city: f"rain in {city}")])


async def test_a_chat_completions_client_runs_a_tool_loop(orchestrator: Orchestrator, session_id: str) -> None:
    answers = [chat({"content": None, "tool_calls": [CALL]}), chat({"content": "Take an umbrella."})]
    with Provider(answers) as provider:
        async with openai.AsyncOpenAI(base_url=provider.url, api_key="none", max_retries=0) as client:
            session = orchestrator.session(session_id, runtime=runtime(OpenAIChat(client, "gpt-test", temperature=0)))
            reply = await session.send("What do I wear?")
    assert (reply.text, reply.usage) == ("Take an umbrella.", Usage(20, 8, 10, 30))
    first, second = provider.asked
    assert first["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What do I wear?"},
    ]
    assert (first["model"], first["temperature"]) == ("gpt-test", 0)
    assert first["tools"][0]["function"]["name"] == "weather"
    assert second["messages"][2:] == [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "rain in Kyōto"},
    ]


async def test_a_chat_completions_client_streams(client: Client, orchestrator: Orchestrator, session_id: str) -> None:
    pieces = [
        chunk({"role": "assistant", "tool_calls": [{"index": 0, **CALL, "function": {"name": "weather"}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"city": '}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '"Kyōto"}'}}]}),
        chunked_usage(),
    ]
    words = [chunk({"content": "Take "}), chunk({"content": "an umbrella."}), chunked_usage()]
    with Provider([pieces, words], "data: [DONE]\n\n") as provider:
        async with openai.AsyncOpenAI(base_url=provider.url, api_key="none", max_retries=0) as provider_client:
            session = orchestrator.session(session_id, runtime=runtime(OpenAIChat(provider_client, "gpt-test")))
            events = [event async for event in session.stream("What do I wear?")]
    assert texts(events) == ["Take ", "an umbrella."]
    reply = events[-1]
    assert isinstance(reply, Reply)
    assert (reply.text, reply.usage) == ("Take an umbrella.", Usage(14, None, 6, 20))
    assert provider.asked[0]["stream_options"] == {"include_usage": True}
    kept = [record async for record in client.sessions.iter_records(session_id)]
    assert kept[1].tool_calls[0].arguments_json == '{"city": "Kyōto"}'
    assert kept[2].content == "rain in Kyōto"


async def test_a_messages_client_runs_a_tool_loop_and_keeps_what_it_thought(
    client: Client, orchestrator: Orchestrator, session_id: str
) -> None:
    thinking = {"type": "thinking", "thinking": "Is it raining?", "signature": "sig"}
    use = {"type": "tool_use", "id": "tu_1", "name": "weather", "input": {"city": "Kyōto"}}
    answers = [claude(thinking, use), claude({"type": "text", "text": "Take an umbrella."})]
    with Provider(answers) as provider:
        async with anthropic.AsyncAnthropic(base_url=provider.url, api_key="none", max_retries=0) as provider_client:
            session = orchestrator.session(session_id, runtime=runtime(AnthropicMessages(provider_client, "claude-x")))
            reply = await session.send("What do I wear?")
    assert reply.text == "Take an umbrella."
    first, second = provider.asked
    assert (first["system"], first["max_tokens"]) == ("Be brief.", 4096)
    assert first["messages"] == [{"role": "user", "content": [{"type": "text", "text": "What do I wear?"}]}]
    assert second["messages"][1:] == [
        {"role": "assistant", "content": [thinking, use]},
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "tu_1",
                    "content": [{"type": "text", "text": "rain in Kyōto"}],
                }
            ],
        },
    ]
    kept = [record async for record in client.sessions.iter_records(session_id)]
    assert json.loads(kept[1].parts_json or "") == [thinking]


async def test_a_messages_client_streams(orchestrator: Orchestrator, session_id: str) -> None:
    start = claude()
    assert isinstance(start, dict)
    block = {"type": "text", "text": ""}
    events: list[tuple[str, dict[str, Any]]] = [
        ("message_start", {"type": "message_start", "message": {**start, "stop_reason": None}}),
        ("content_block_start", {"type": "content_block_start", "index": 0, "content_block": block}),
        *(
            (
                "content_block_delta",
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
            )
            for text in ("Hel", "lo")
        ),
        ("content_block_stop", {"type": "content_block_stop", "index": 0}),
        (
            "message_delta",
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 12}},
        ),
        ("message_stop", {"type": "message_stop"}),
    ]
    with Provider([events]) as provider:
        async with anthropic.AsyncAnthropic(base_url=provider.url, api_key="none", max_retries=0) as provider_client:
            session = orchestrator.session(session_id, runtime=runtime(AnthropicMessages(provider_client, "claude-x")))
            told = [event async for event in session.stream("Hi")]
    assert texts(told) == ["Hel", "lo"]
    reply = told[-1]
    assert isinstance(reply, Reply)
    assert (reply.text, reply.usage.output_tokens) == ("Hello", 12)


async def test_a_conversation_that_begins_with_the_assistant_is_taken_by_a_messages_client(
    client: Client, orchestrator: Orchestrator, session_id: str
) -> None:
    await client.sessions.append_records(session_id, [Record.assistant("Welcome!")])
    with Provider([claude({"type": "text", "text": "ok"})]) as provider:
        async with anthropic.AsyncAnthropic(base_url=provider.url, api_key="none", max_retries=0) as provider_client:
            model = AnthropicMessages(provider_client, "claude-x")
            await orchestrator.session(session_id, runtime=runtime(model)).send("Hi")
    assert [message["role"] for message in provider.asked[0]["messages"]] == ["user", "assistant", "user"]


def texts(events: list[TurnEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, TextDelta) and event.text]
