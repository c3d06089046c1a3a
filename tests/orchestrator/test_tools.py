"""A turn with tools: rounds, parallel calls, errors that the model is told, and a history that is always valid."""

import asyncio
import json
import threading

import pytest

import ramet
from ramet import Client, Orchestrator
from ramet.orchestrator import Runtime, SessionHandle, Tool
from tests.orchestrator.scripted import Gate, Line, Scripted, calls, history, model, tool


async def handle(orchestrator: Orchestrator, asked: Scripted, *tools: Tool, max_rounds: int = 16) -> SessionHandle:
    root = await orchestrator.create_root()
    return orchestrator.session(root.id, runtime=Runtime(llm=asked, tools=tools, max_rounds=max_rounds))


async def test_a_tool_loop_is_kept_whole_and_shown_to_the_model(client: Client, orchestrator: Orchestrator) -> None:
    def add(a: int, b: int) -> int:
        assert threading.current_thread() is not threading.main_thread(), "a plain tool must not hold up the loop"
        return a + b

    async def echo(text: str) -> str:
        return text

    asked = model(calls(("add", '{"a": 1, "b": 2}')), calls(("echo", '{"text": "größer"}'), prefix="d"), "done")
    session = await handle(orchestrator, asked, tool("add", add), tool("echo", echo))
    reply = await session.send("go")
    assert asked.offered == [["add", "echo"]] * 3
    assert await history(client, session.id) == [
        ("user", "go"),
        ("assistant", ""),
        ("tool", "3"),
        ("assistant", ""),
        ("tool", "größer"),
        ("assistant", "done"),
    ]
    assert asked.texts[2] == await _without_last(client, session.id)
    assert [each.tool_call_id for each in reply.records if each.role is ramet.Role.TOOL] == ["c0", "d0"]
    assert (await client.sessions.get_context(session.id)).incomplete_records == 0


async def _without_last(client: Client, session_id: str) -> list[tuple[str, str]]:
    return (await history(client, session_id))[:-1]


async def test_parallel_calls_run_at_once_and_are_kept_in_the_order_of_the_calls(
    client: Client, orchestrator: Orchestrator
) -> None:
    first, second = Gate(), Gate()

    async def slow() -> str:
        await first.wait()
        return "slow"

    async def fast() -> str:
        await second.wait()
        return "fast"

    session = await handle(
        orchestrator, model(calls(("slow", ""), ("fast", "{}")), "done"), tool("slow", slow), tool("fast", fast)
    )
    turn = asyncio.create_task(session.send("go"))
    # Both are at work before either has answered.
    await first.is_reached()
    await second.is_reached()
    second.opened.set()
    await asyncio.wait_for(second.left.wait(), 30)
    first.opened.set()
    await turn
    assert (await history(client, session.id))[2:4] == [("tool", "slow"), ("tool", "fast")]


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("broken", "{}", "Error: ValueError: no such file"),
        ("nobody", "{}", "there is no tool 'nobody'; known: broken"),
        ("broken", "[1]", "the arguments are not a JSON object"),
        ("broken", '{"x": 1}', "TypeError"),
        ("broken", "not json", "the arguments are not a JSON object"),
    ],
)
async def test_what_goes_wrong_with_a_tool_is_told_to_the_model(
    client: Client, orchestrator: Orchestrator, name: str, arguments: str, told: str
) -> None:
    async def broken() -> str:
        raise ValueError("no such file")

    asked = model(calls((name, arguments)), "I see")
    session = await handle(orchestrator, asked, tool("broken", broken))
    reply = await session.send("go")
    assert reply.text == "I see"
    answer = asked.read[1][-1]
    assert told in answer.content
    assert json.loads(answer.metadata_json or "{}") == {"is_error": True}
    assert (await client.sessions.get_context(session.id)).incomplete_records == 0


async def test_rounds_are_bounded_and_a_turn_that_meets_the_bound_writes_nothing(
    client: Client, orchestrator: Orchestrator
) -> None:
    runs = []
    asked = model(calls(("again", "{}")))
    session = await handle(orchestrator, asked, tool("again", lambda: runs.append(1)), max_rounds=3)
    with pytest.raises(ramet.FailedPrecondition) as refused:
        await session.send("go")
    assert refused.value.reason == "TOO_MANY_ROUNDS"
    # The calls of the last round are not run, since nobody would hear of their results.
    assert (len(asked.read), len(runs)) == (3, 2)
    assert await history(client, session.id) == []


@pytest.mark.parametrize("where", ["model", "tool", "second round"])
async def test_a_cancelled_turn_writes_nothing_and_the_next_one_goes_on(
    client: Client, orchestrator: Orchestrator, where: str
) -> None:
    gate = Gate()

    async def think(_: object) -> str:
        await gate.wait()
        return "never"

    async def work() -> str:
        if where == "tool":
            await gate.wait()
        return "worked"

    scripts: dict[str, list[Line]] = {
        "model": [think],
        "tool": [calls(("work", "{}")), "never"],
        "second round": [calls(("work", "{}")), think],
    }
    session = await handle(orchestrator, Scripted(scripts[where]), tool("work", work))
    await orchestrator.put_insight(session.id, "psst")
    turn = asyncio.create_task(session.send("go"))
    await gate.is_reached()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert gate.left.is_set()
    assert await history(client, session.id) == []
    reply = await session.send("go on", model=model("here"))
    assert (reply.text, reply.insight_consumed) == ("here", True)


async def test_ids_and_arguments_that_models_make_up_are_made_keepable(
    client: Client, orchestrator: Orchestrator
) -> None:
    twice = ramet.orchestrator.ModelReply(
        "", (ramet.ToolCall("a", "work", "{}"), ramet.ToolCall("a", "work", "{}"), ramet.ToolCall("", "work", "NaN"))
    )
    session = await handle(orchestrator, model(twice, "done"), tool("work", lambda: "ok"))
    await session.send("go")
    (group,) = [each async for each in client.sessions.iter_records(session.id) if each.tool_calls]
    ids = [each.id for each in group.tool_calls]
    assert (ids[0], len(set(ids)), all(ids)) == ("a", 3, True)
    assert (await client.sessions.get_context(session.id)).incomplete_records == 0


async def test_a_result_too_long_for_a_record_is_cut_and_marked(orchestrator: Orchestrator) -> None:
    asked = model(calls(("talk", "{}")), "done")
    session = await handle(orchestrator, asked, tool("talk", lambda: "ä" * 1_000_000))
    await session.send("go")
    assert asked.read[1][-1].content.endswith("[cut: 1000000 characters in all]")
