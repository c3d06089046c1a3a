"""Turns of one session run one after another, turns of different sessions side by side."""

import asyncio

import pytest

import ramet
from ramet import Client, Orchestrator
from ramet.orchestrator import Runtime
from tests.orchestrator.scripted import Gate, calls, history, model, tool


async def test_parallel_sends_to_one_session_keep_their_order(client: Client, orchestrator: Orchestrator) -> None:
    session = orchestrator.session((await orchestrator.create_root()).id)
    asked = model(lambda messages: f"to {messages[-1].content}")
    await asyncio.gather(*(session.send(str(number), model=asked) for number in range(20)))
    said = await history(client, session.id)
    assert said == [line for number in range(20) for line in (("user", str(number)), ("assistant", f"to {number}"))]
    # Each turn read all that came before it.
    assert [len(messages) for messages in asked.read] == [2 * number + 1 for number in range(20)]


async def test_turns_of_different_sessions_run_at_the_same_time(orchestrator: Orchestrator) -> None:
    together = asyncio.Barrier(10)

    async def think(_: object) -> str:
        await asyncio.wait_for(together.wait(), 30)
        return "done"

    roots = [await orchestrator.create_root() for _ in range(10)]
    await asyncio.gather(*(orchestrator.session(root.id).send("go", model=model(think)) for root in roots))


async def test_a_waiting_turn_can_be_cancelled_and_the_line_goes_on(client: Client, orchestrator: Orchestrator) -> None:
    session = orchestrator.session((await orchestrator.create_root()).id)
    gate = Gate()

    async def think(_: object) -> str:
        await gate.wait()
        return "first"

    first = asyncio.create_task(session.send("one", model=model(think)))
    await gate.is_reached()
    second = asyncio.create_task(session.send("two", model=model("second")))
    third = asyncio.create_task(session.send("three", model=model("third")))
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    gate.opened.set()
    await asyncio.gather(first, third)
    assert [text for _, text in await history(client, session.id)] == ["one", "first", "three", "third"]


async def test_a_tool_that_sends_to_its_own_session_is_told_so_instead_of_waiting_for_itself(
    orchestrator: Orchestrator,
) -> None:
    root = await orchestrator.create_root()

    async def recurse() -> str:
        return (await orchestrator.session(root.id).send("within", model=model())).text

    asked = model(calls(("recurse", "{}")), "done")
    session = orchestrator.session(root.id, runtime=Runtime(llm=asked, tools=[tool("recurse", recurse)]))
    await asyncio.wait_for(session.send("go"), 30)
    assert "wait for itself" in asked.read[1][-1].content


async def test_a_tool_may_send_to_another_session(orchestrator: Orchestrator) -> None:
    root = await orchestrator.create_root()
    expert = await orchestrator.create_session(root.id)

    async def ask(question: str) -> str:
        return (await orchestrator.session(expert.id).send(question, model=model("42"))).text

    asked = model(calls(("ask", '{"question": "6 x 7?"}')), "It is 42.")
    session = orchestrator.session(root.id, runtime=Runtime(llm=asked, tools=[tool("ask", ask)]))
    assert (await session.send("go")).text == "It is 42."
    assert asked.read[1][-1].content == "42"


async def test_consolidate_makes_memory_of_records_and_memory(client: Client, orchestrator: Orchestrator) -> None:
    session = orchestrator.session((await orchestrator.create_root()).id)
    await client.sessions.append_records(session.id, [ramet.Record.user("I like ferns")])
    await client.sessions.put_memory(session.id, "old")

    async def remember(records: object, memory: str | None) -> str:
        return f"{memory} and {[record.content for record in records]}"  # type: ignore[attr-defined] # records

    slot = await session.consolidate(remember)
    assert (slot.content, slot.version) == ("old and ['I like ferns']", 2)
    assert (await session.consolidate(lambda records, memory: None)).version == 2


async def test_of_two_consolidations_at_once_one_is_refused(client: Client, orchestrator: Orchestrator) -> None:
    session = orchestrator.session((await orchestrator.create_root()).id)

    async def remember(_: object, __: str | None) -> str:
        await client.sessions.put_memory(session.id, "the other's")
        return "mine"

    with pytest.raises(ramet.Aborted) as refused:
        await session.consolidate(remember)
    assert refused.value.reason == "STALE_VERSION"
    assert (await client.sessions.get_memory(session.id)).content == "the other's"


async def test_reflect_delivers_each_insight_and_reports_who_could_not_have_it(
    client: Client, orchestrator: Orchestrator
) -> None:
    root = await orchestrator.create_root(label="Root")
    child = await orchestrator.create_session(root.id, label="Child")
    await client.sessions.put_memory(child.id, "likes ferns")
    seen: list[tuple[str, str | None]] = []

    async def derive(digests: object) -> dict[str, str]:
        seen.extend((digest.label, digest.memory) for digest in digests)  # type: ignore[attr-defined] # digests
        return {child.id: "tell of mosses", "nobody": "lost", root.id: "look at the child"}

    done = await orchestrator.reflect(derive)
    assert seen == [("Root", None), ("Child", "likes ferns")]
    assert (set(done.delivered), set(done.failed)) == ({child.id, root.id}, {"nobody"})
    assert isinstance(done.failed["nobody"], ramet.NotFound)
    assert (await client.sessions.get_insight(child.id)).content == "tell of mosses"
