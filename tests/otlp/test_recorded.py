"""What a recorder told comes out as a trace, with its agents nested and nothing that its mask took out."""

from __future__ import annotations

import asyncio

import ramet
from ramet.otlp import export_diagnosis
from ramet.recorder import AgentLoggingHook, Recorder, note_retrieval, record_tool
from tests.otlp.traces import Trace, values

SECRET = "sk-9f8e7d"


@record_tool
async def lookup_knowledge(query: str, token: str) -> str:
    await asyncio.sleep(0)
    note_retrieval(l0_match_count=1, l0_titles=[f"about {token}"])
    return f"found with {token}"


async def sub_agent(name: str) -> None:
    hook = AgentLoggingHook(name, model="small")
    for _ in range(2):
        hook.before_model([{"role": "user", "content": f"use {SECRET}"}])
        await asyncio.sleep(0)
        hook.after_model(f"I use {SECRET}", thought=f"hm {SECRET}", tool_calls=[{"name": "x", "arguments": SECRET}])
        await lookup_knowledge("q", token=SECRET)


def mask(text: str, _: str) -> str:
    return text.replace(SECRET, "***")


async def test_sub_agents_at_once_nest_exactly_and_no_secret_comes_out(address: str, client: ramet.Client) -> None:
    agents = ("planner", "executor", "critic")
    async with Recorder(address, space=client.space, mask=mask) as recorder:
        with recorder.diagnosis(f"why {SECRET}?", agent_flow="AI_OPS") as diagnosis:
            supervisor = AgentLoggingHook("supervisor")
            supervisor.before_model(f"ask {SECRET}")
            supervisor.after_model("I ask three.")
            await asyncio.gather(*(asyncio.create_task(sub_agent(name)) for name in agents))
            diagnosis.self_evaluation(70, reasoning=f"because {SECRET}")
            diagnosis.feedback("user", useful=True, comment=f"thanks {SECRET}")
            diagnosis.fail(f"ValueError: {SECRET}")
        report = await recorder.flush_async(20)
    assert (report.pending, report.rejected, report.dropped) == (0, 0, 0)
    exported = await export_diagnosis(client, diagnosis.session_id, content=True)
    assert SECRET.encode() not in exported
    assert b"about ***" in exported
    trace = Trace.read(exported)
    top = trace["invoke_agent supervisor"]
    assert top.parent_span_id == trace["invoke_agent AI_OPS"].span_id
    runs = {name: trace[f"invoke_agent {name}"] for name in agents}
    assert {run.parent_span_id for run in runs.values()} == {top.span_id}
    for run in runs.values():
        within = [span.name for span in trace.spans if span.parent_span_id == run.span_id]
        assert sorted(within) == ["chat small"] * 2 + ["execute_tool lookup_knowledge"] * 2
    tools = [span for span in trace.spans if span.name.startswith("execute_tool")]
    found = [span for span in trace.spans if span.name.startswith("retrieval")]
    assert sorted(span.parent_span_id for span in found) == sorted(span.span_id for span in tools)
    assert values(trace["invoke_agent AI_OPS"].attributes)["error.type"] == "ValueError"
