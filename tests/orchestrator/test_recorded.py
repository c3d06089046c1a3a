"""With a recorder each call of the model is a step and each call of a tool an invocation, by themselves."""

import asyncio
from pathlib import Path

import pytest

from ramet import Client, Orchestrator
from ramet.client import Usage
from ramet.orchestrator import ModelReply, Runtime
from ramet.recorder import Recorder
from tests.orchestrator.scripted import calls, model, tool


async def test_a_turn_is_a_diagnosis_of_its_session_with_steps_and_tool_calls(
    address: str, space: str, client: Client, tmp_path: Path
) -> None:
    recorder = Recorder(address, space=space, spool=tmp_path)
    orchestrator = Orchestrator(client, recorder=recorder)
    root = await orchestrator.create_root()

    async def broken() -> str:
        raise ValueError("no such file")

    asked = model(calls(("look", '{"at": 1}'), ("broken", "{}")), ModelReply("done", usage=Usage(10, 4, 2, 12)))
    tools = [tool("look", lambda at: "there"), tool("broken", broken)]
    session = orchestrator.session(root.id, runtime=Runtime(llm=asked, tools=tools, agent="planner"))
    await session.send("what is wrong?")
    await asyncio.to_thread(recorder.close, 30)

    (found,) = (await client.telemetry.list_diagnoses()).diagnoses
    assert (found.query, found.conversation_id, found.status.value.upper()) == ("what is wrong?", root.id, "SUCCESS")
    chain = await client.telemetry.get_decision_chain(found.session_id)
    assert [(step.agent_name, step.has_tool_call) for step in chain.steps] == [("planner", True), ("planner", False)]
    assert {(call.tool_name, call.success) for call in chain.steps[0].tool_invocations} == {
        ("look", True),
        ("broken", False),
    }
    assert chain.steps[1].usage.total_tokens == 12
    assert (found.step_count, found.tool_call_count) == (2, 2)


async def test_a_failed_turn_is_a_failed_diagnosis(address: str, space: str, client: Client, tmp_path: Path) -> None:
    recorder = Recorder(address, space=space, spool=tmp_path)
    orchestrator = Orchestrator(client, recorder=recorder)
    root = await orchestrator.create_root()
    with pytest.raises(ConnectionError):
        await orchestrator.session(root.id).send("hi", model=model(ConnectionError("503")))
    await asyncio.to_thread(recorder.close, 30)
    (found,) = (await client.telemetry.list_diagnoses()).diagnoses
    chain = await client.telemetry.get_decision_chain(found.session_id)
    assert (found.status.value.upper(), chain.steps[0].status.value.upper()) == ("FAILED", "FAILED")
