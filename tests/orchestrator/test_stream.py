"""Streaming a turn: events as they come, the reply last when the turn is written, and leaving early."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

import ramet
from ramet import Client, Orchestrator, Record
from ramet.orchestrator import ModelDelta, Reply, Runtime, TextDelta, ThoughtDelta, Tool, ToolAnswered, ToolCalled
from tests.orchestrator.scripted import Gate, calls, history, model, streaming, tool


async def test_events_come_in_order_and_the_reply_last(client: Client, orchestrator: Orchestrator) -> None:
    root = await orchestrator.create_root()
    look = calls(("look", "{}")).tool_calls
    rounds = iter(
        [
            [
                ModelDelta("let me ", thought="hm"),
                ModelDelta("see"),
                ModelDelta(tool_calls=look),
            ],
            [ModelDelta("it "), ModelDelta("is")],
        ]
    )

    def llm(messages: Sequence[Record], tools: Sequence[Tool]) -> AsyncIterator[ModelDelta]:
        return streaming(next(rounds))

    session = orchestrator.session(root.id, runtime=Runtime(llm=llm, tools=[tool("look", lambda: "there")]))
    told = []
    async for event in session.stream("go"):
        if isinstance(event, Reply):
            # What the reply says is already written.
            assert len(await history(client, root.id)) == 4
            told.append(event.text)
        elif isinstance(event, TextDelta | ThoughtDelta):
            told.append(f"{type(event).__name__} {event.round} {event.text}")
        elif isinstance(event, ToolCalled | ToolAnswered):
            told.append(f"{type(event).__name__} {event.call.name}")
    assert told == [
        "ThoughtDelta 1 hm",
        "TextDelta 1 let me ",
        "TextDelta 1 see",
        "ToolCalled look",
        "ToolAnswered look",
        "TextDelta 2 it ",
        "TextDelta 2 is",
        "it is",
    ]


async def test_leaving_a_stream_cancels_the_model_and_writes_nothing(
    client: Client, orchestrator: Orchestrator
) -> None:
    root = await orchestrator.create_root()
    gate = Gate()

    def llm(messages: Sequence[Record], tools: Sequence[Tool]) -> AsyncIterator[ModelDelta]:
        return streaming([ModelDelta("a"), gate.wait, ModelDelta("b")])

    stream = orchestrator.session(root.id).stream("go", model=llm)
    assert isinstance(await anext(stream), TextDelta)
    waiting = asyncio.ensure_future(anext(stream))
    await gate.is_reached()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await stream.aclose()
    await asyncio.wait_for(gate.left.wait(), 30)
    assert await history(client, root.id) == []


async def test_a_model_that_fails_in_its_stream_is_heard(client: Client, orchestrator: Orchestrator) -> None:
    root = await orchestrator.create_root()

    async def fail() -> None:
        raise ConnectionError("cut")

    def llm(messages: Sequence[Record], tools: Sequence[Tool]) -> AsyncIterator[ModelDelta]:
        return streaming([ModelDelta("a"), fail])

    stream = orchestrator.session(root.id).stream("go", model=llm)
    assert isinstance(await anext(stream), TextDelta)
    with pytest.raises(ConnectionError, match="cut"):
        await anext(stream)
    assert await history(client, root.id) == []


async def test_a_model_that_cannot_stream_yields_its_text_whole(orchestrator: Orchestrator) -> None:
    root = await orchestrator.create_root()
    events = [event async for event in orchestrator.session(root.id).stream("go", model=model("whole"))]
    assert [event.text for event in events if isinstance(event, TextDelta | Reply)] == ["whole", "whole"]


def test_the_blocking_twin_sends_and_streams(address: str, space: str) -> None:
    with ramet.connect_blocking(address, space=space) as client:
        orchestrator = ramet.BlockingOrchestrator(client)
        session = orchestrator.session(orchestrator.create_root().id)
        assert session.send("one", model=model("1")).text == "1"
        assert [event.text for event in session.stream("two", model=model("2")) if isinstance(event, Reply)] == ["2"]
        assert len(list(client.sessions.iter_records(session.id))) == 4
