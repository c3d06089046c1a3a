"""A history over its budget is made shorter by compress; two sessions whose tools send to each other never hang."""

import asyncio
from collections.abc import Sequence

import ramet
from ramet import Client, Orchestrator, Record, ToolCall
from ramet.orchestrator import Budget, Runtime
from tests.orchestrator.scripted import Gate, calls, model, tool


async def test_compress_makes_the_history_shorter_only_when_it_is_over_the_budget(
    client: Client, orchestrator: Orchestrator
) -> None:
    root = await orchestrator.create_root()
    await client.sessions.append_records(root.id, [Record.user(f"word {at}") for at in range(4)])
    given: list[int] = []

    def compress(records: Sequence[Record], budget: Budget) -> list[Record]:
        given.append(len(records))
        orphan = Record.assistant(tool_calls=[ToolCall("c", "lost")])
        return [Record.user("in short"), orphan, records[-1]]

    asked = model()
    for budget in (Budget(records=10), Budget(records=3), Budget(characters=5), None):
        runtime = Runtime(llm=asked, compress=compress, budget=budget)
        await orchestrator.session(root.id, runtime=runtime).send("now")
        await client.sessions.truncate_records(root.id, 4)
    short = [("user", "in short"), ("user", "word 3"), ("user", "now")]
    assert given == [4, 4, 4]
    assert asked.texts[0][0] == ("user", "word 0")
    assert asked.texts[1:] == [short, short, short]


async def test_two_sessions_whose_tools_send_to_each_other_do_not_wait_forever(orchestrator: Orchestrator) -> None:
    roots = [await orchestrator.create_root() for _ in range(2)]
    gates = [Gate(), Gate()]

    def other(at: int) -> Runtime:
        async def ask() -> str:
            await gates[at].wait()
            return (await orchestrator.session(roots[1 - at].id).send("you?", model=model("yes"))).text

        return Runtime(llm=model(calls(("ask", "{}")), "done"), tools=[tool("ask", ask)])

    turns = [asyncio.create_task(orchestrator.session(roots[at].id, runtime=other(at)).send("go")) for at in range(2)]
    for gate in gates:
        await gate.is_reached()
    for gate in gates:
        gate.opened.set()
    replies = await asyncio.wait_for(asyncio.gather(*turns, return_exceptions=True), 60)
    answers = [reply.records[2].content if not isinstance(reply, BaseException) else reply for reply in replies]
    assert any("wait for itself" in str(answer) for answer in answers)
    assert all(not isinstance(reply, BaseException) or isinstance(reply, ramet.Aborted) for reply in replies)
