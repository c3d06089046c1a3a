"""A diagnosis that a server was told is exported as the trace that the conventions ask for."""

from __future__ import annotations

import asyncio
import json

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

import ramet
from ramet.otlp import export_diagnosis, span_id_of, trace_id_of
from ramet.telemetry.v1 import telemetry_pb2 as pb
from tests.otlp.traces import Trace, tell, values
from tests.telemetry import events as e

SECOND = 1_000_000_000


def supervised() -> list[pb.Event]:
    """A supervisor with three sub-agents at once, tools and a lookup among them, and words about it."""
    sub_agents = [
        e.step_completed(
            f"sub-{agent}",
            f"sub-{agent}",
            4,
            started_at=e.at(3),
            ended_at=e.at(4),
            step_index=1 + number,
            agent_name=agent,
            parent_step_key="s0",
            model="small",
            provider="openai",
        )
        for number, agent in enumerate(("planner", "executor", "critic"))
    ]
    lookup = pb.Retrieval(
        layer=pb.RETRIEVAL_LAYER_L0_L1, l0_match_count=2, l1_match_count=0, details_json='{"l0_titles": ["库"]}'
    )
    return [
        e.started("start", 0, query="为什么慢? 🔥", agent_flow="AI_OPS", conversation_id="c1"),
        e.step_completed(
            "sup",
            "s0",
            2,
            started_at=e.at(1),
            ended_at=e.at(2),
            agent_name="supervisor",
            model="large",
            provider="anthropic",
            has_tool_call=True,
            thought="Ask three.",
            model_input_json='[{"role": "user", "content": "为什么慢?", "truncated": true, "length": 900}]',
            model_output_json='{"text": "I ask.", "tool_calls": [{"name": "delegate", "arguments": {"to": 3}}]}',
            usage=pb.Usage(input_tokens=100, cached_tokens=40, output_tokens=7, cost_micros=12),
        ),
        *sub_agents,
        e.tool(
            "look",
            "t1",
            5,
            step_key="sub-planner",
            started_at=e.at(4.5),
            ended_at=e.at(5),
            input_params_json='{"query": "slow"}',
            output_preview="found",
            output_length=9000,
            is_truncated=True,
            retrieval=lookup,
        ),
        e.tool(
            "alert",
            "t2",
            6,
            step_key="sub-executor",
            tool_name="queryPrometheusAlerts",
            started_at=e.at(5),
            ended_at=e.at(6),
            success=False,
            error_message="TimeoutError: no answer",
        ),
        e.tool("stray", "t3", 6, step_key="never-came", tool_name="stray", ended_at=e.at(6), duration_ms=500),
        e.completed("end", 9, ended_at=e.at(9)),
        e.evaluation("judged", confidence=85, reasoning="因为 alerts", evidence_count=3),
        e.feedback("word", e.NOT_USEFUL, comment="no"),
    ]


async def test_spans_nest_as_the_agents_did(address: str, client: ramet.Client) -> None:
    await tell(address, client, *supervised())
    trace = Trace.read(await export_diagnosis(client, "d"))
    assert len(trace.spans) == 1 + 4 + 4 + 3 + 1
    agents = {"planner", "executor", "critic"}
    for agent in agents:
        run = trace[f"invoke_agent {agent}"]
        assert run.parent_span_id == trace["invoke_agent supervisor"].span_id
        assert [link.span_id for link in run.links] == [trace.step("s0").span_id]
        step = trace.step(f"sub-{agent}")
        assert (step.name, step.parent_span_id) == ("chat small", run.span_id)
    root = trace["invoke_agent AI_OPS"]
    assert root.parent_span_id == b""
    assert trace["invoke_agent supervisor"].parent_span_id == root.span_id
    assert trace["execute_tool stray"].parent_span_id == root.span_id
    for tool, agent in (("lookup_knowledge", "planner"), ("queryPrometheusAlerts", "executor")):
        span = trace[f"execute_tool {tool}"]
        assert span.parent_span_id == trace[f"invoke_agent {agent}"].span_id
        assert [link.span_id for link in span.links] == [trace.step(f"sub-{agent}").span_id]
    assert trace["retrieval lookup_knowledge"].parent_span_id == trace["execute_tool lookup_knowledge"].span_id
    known: set[bytes] = {b""}
    for span in trace.spans:
        assert span.parent_span_id in known  # each after the one that it lies in
        known.add(span.span_id)


async def test_times_are_exact_and_a_run_holds_what_is_within_it(address: str, client: ramet.Client) -> None:
    await tell(address, client, *supervised())
    trace = Trace.read(await export_diagnosis(client, "d"))

    def seconds(name: str) -> tuple[float, float]:
        span = trace[name]
        start, end = (time - e.START * SECOND for time in (span.start_time_unix_nano, span.end_time_unix_nano))
        return start / SECOND, end / SECOND

    assert seconds("invoke_agent AI_OPS") == (0, 9)
    assert seconds("invoke_agent supervisor") == (1, 6)
    assert seconds("chat large") == (1, 2)
    assert seconds("invoke_agent planner") == (3, 5)
    assert seconds("invoke_agent critic") == (3, 4)
    assert seconds("execute_tool lookup_knowledge") == seconds("retrieval lookup_knowledge") == (4.5, 5)
    assert seconds("execute_tool stray") == (5.5, 6)


async def test_attributes_bear_the_names_of_the_conventions(address: str, client: ramet.Client) -> None:
    await tell(address, client, *supervised())
    trace = Trace.read(await export_diagnosis(client, "d"))
    assert values(trace["chat large"].attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "large",
        "gen_ai.conversation.id": "c1",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.cache_read.input_tokens": 40,
        "gen_ai.usage.output_tokens": 7,
        "ramet.usage.total_tokens": 107,
        "ramet.usage.cost_micros": 12,
        "ramet.step_key": "s0",
        "ramet.step_index": 0,
        "ramet.status": "success",
    }
    assert values(trace["invoke_agent planner"].attributes) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "planner",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "small",
        "gen_ai.conversation.id": "c1",
        "ramet.parent_step_key": "s0",
        "ramet.status": "success",
    }
    assert values(trace["execute_tool lookup_knowledge"].attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "lookup_knowledge",
        "gen_ai.tool.call.id": "t1",
        "ramet.step_key": "sub-planner",
        "ramet.output_length": 9000,
        "ramet.is_truncated": True,
    }
    assert values(trace["retrieval lookup_knowledge"].attributes) == {
        "gen_ai.operation.name": "retrieval",
        "ramet.retrieval.layer": "L0+L1",
        "ramet.retrieval.l0_match_count": 2,
        "ramet.retrieval.l1_match_count": 0,
        "ramet.is_truncated": True,
    }
    root = values(trace["invoke_agent AI_OPS"].attributes)
    assert root["ramet.session_id"] == "d"
    assert root["ramet.space"] == client.space
    assert (root["ramet.total_tokens"], root["ramet.steps_with_tokens"], root["ramet.step_count"]) == (107, 1, 4)
    kinds = {span.name.split()[0]: span.kind for span in trace.spans}
    assert kinds == {
        "invoke_agent": Span.SPAN_KIND_INTERNAL,
        "execute_tool": Span.SPAN_KIND_INTERNAL,
        "chat": Span.SPAN_KIND_CLIENT,
        "retrieval": Span.SPAN_KIND_CLIENT,
    }


async def test_words_about_it_are_evaluation_events(address: str, client: ramet.Client) -> None:
    await tell(address, client, *supervised())
    trace = Trace.read(await export_diagnosis(client, "d"))
    judged, word = trace["invoke_agent AI_OPS"].events
    assert (judged.name, word.name) == ("gen_ai.evaluation.result", "gen_ai.evaluation.result")
    assert values(judged.attributes) == {
        "gen_ai.evaluation.name": "self_evaluation",
        "gen_ai.evaluation.score.value": 85.0,
        "gen_ai.evaluation.explanation": "因为 alerts",
        "ramet.evidence_count": 3,
    }
    assert values(word.attributes) == {
        "gen_ai.evaluation.name": "feedback",
        "gen_ai.evaluation.score.label": "not_useful",
        "gen_ai.evaluation.explanation": "no",
        "ramet.feedback.source": "user",
    }
    assert judged.time_unix_nano == trace["invoke_agent AI_OPS"].end_time_unix_nano
    assert word.time_unix_nano > 0


async def test_errors_are_told_and_what_was_cancelled_did_not_fail(address: str, client: ramet.Client) -> None:
    await tell(
        address,
        client,
        *supervised()[:-3],
        e.step_completed("f", "f", 7, agent_name="a", step_index=5, status=e.FAILED, error_message="model is out"),
        e.step_completed("c", "c", 7, agent_name="b", step_index=6, status=e.CANCELLED),
        e.step_completed("r1", "r1", 7, agent_name="again", step_index=7, status=e.FAILED, error_message="OSError"),
        e.step_completed("r2", "r2", 8, agent_name="again", step_index=8),
        e.completed("end", 9, status=e.FAILED, error_message="ramet.errors.FlowError: gave up"),
    )
    trace = Trace.read(await export_diagnosis(client, "d"))
    failed = {
        span.name if not span.name.startswith("chat") else values(span.attributes)["ramet.step_key"]: (
            values(span.attributes)["error.type"],
            span.status.message,
        )
        for span in trace.spans
        if span.status.code == Status.STATUS_CODE_ERROR
    }
    assert failed == {
        "execute_tool queryPrometheusAlerts": ("TimeoutError", "TimeoutError: no answer"),
        "f": ("_OTHER", "model is out"),
        "invoke_agent a": ("_OTHER", "model is out"),
        "r1": ("OSError", "OSError"),
        "invoke_agent AI_OPS": ("ramet.errors.FlowError", "ramet.errors.FlowError: gave up"),
    }
    others = [span for span in trace.spans if span.status.code != Status.STATUS_CODE_ERROR]
    assert all(span.status.code == Status.STATUS_CODE_UNSET for span in others)
    assert all("error.type" not in values(span.attributes) for span in others)
    assert values(trace.step("c").attributes)["ramet.status"] == "cancelled"


async def test_unknown_is_left_out_and_zero_is_told(address: str, client: ramet.Client) -> None:
    await tell(
        address,
        client,
        e.step_started("s", "s", 1),
        e.step_completed("z", "z", 2, step_index=1, usage=pb.Usage(input_tokens=0, output_tokens=0)),
    )
    trace = Trace.read(await export_diagnosis(client, "d"))
    assert values(trace.step("s").attributes) == {
        "gen_ai.operation.name": "chat",
        "ramet.step_key": "s",
        "ramet.step_index": 0,
        "ramet.status": "running",
    }
    assert trace.step("s").name == "chat"
    zero = values(trace.step("z").attributes)
    assert (zero["gen_ai.usage.input_tokens"], zero["ramet.usage.total_tokens"]) == (0, 0)
    assert "gen_ai.usage.cache_read.input_tokens" not in zero
    root = trace["invoke_agent"]
    assert "gen_ai.agent.name" not in values(root.attributes)
    assert root.end_time_unix_nano == trace.step("z").end_time_unix_nano
    open_step = trace.step("s")
    assert open_step.start_time_unix_nano == open_step.end_time_unix_nano > 0


async def test_a_step_that_ended_before_it_started_is_flagged(address: str, client: ramet.Client) -> None:
    await tell(address, client, e.step_completed("s", "s", 5, started_at=e.at(5), ended_at=e.at(3)))
    span = Trace.read(await export_diagnosis(client, "d")).step("s")
    assert span.start_time_unix_nano == span.end_time_unix_nano == (e.START + 5) * SECOND
    assert values(span.attributes)["ramet.duration_flagged"] is True


async def test_ids_are_the_same_each_time_and_differ_between_diagnoses(address: str, client: ramet.Client) -> None:
    await tell(address, client, *supervised(), e.started("other", session_id="d2"))
    first, second = await asyncio.gather(export_diagnosis(client, "d"), export_diagnosis(client, "d"))
    assert first == second
    trace, other = Trace.read(first), Trace.read(await export_diagnosis(client, "d2"))
    assert {span.trace_id for span in trace.spans} == {trace_id_of(client.space, "d")}
    assert trace.step("s0").span_id == span_id_of(client.space, "d", "step", "s0")
    assert {len(span.span_id) for span in trace.spans} == {8}
    assert len(trace.spans[0].trace_id) == 16
    assert other.spans[0].trace_id != trace.spans[0].trace_id
    assert trace_id_of("a", "bc") != trace_id_of("ab", "c")


async def test_content_is_told_on_demand_alone(address: str, client: ramet.Client) -> None:
    await tell(address, client, *supervised())
    silent = await export_diagnosis(client, "d")
    for word in ("为什么慢", "I ask.", "Ask three.", '"slow"', "found", "库"):
        assert word.encode() not in silent
    trace = Trace.read(await export_diagnosis(client, "d", content=True))
    chat = values(trace["chat large"].attributes)
    assert json.loads(str(chat["gen_ai.input.messages"])) == [
        {"role": "user", "parts": [{"type": "text", "content": "为什么慢?", "truncated": True, "length": 900}]}
    ]
    assert json.loads(str(chat["gen_ai.output.messages"])) == [
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "Ask three."},
                {"type": "text", "content": "I ask."},
                {"type": "tool_call", "name": "delegate", "arguments": {"to": 3}},
            ],
            "finish_reason": "tool_call",
        }
    ]
    tool = values(trace["execute_tool lookup_knowledge"].attributes)
    assert json.loads(str(tool["gen_ai.tool.call.arguments"])) == {"query": "slow"}
    assert tool["gen_ai.tool.call.result"] == "found"
    assert values(trace["retrieval lookup_knowledge"].attributes)["gen_ai.retrieval.query.text"] == "slow"
    assert "为什么慢? 🔥" in str(values(trace["invoke_agent AI_OPS"].attributes)["gen_ai.input.messages"])


async def test_resource_and_scope_say_who_tells(address: str, client: ramet.Client) -> None:
    await tell(address, client, e.started("s"))
    request = ExportTraceServiceRequest.FromString(await export_diagnosis(client, "d", service_name="on-call"))
    (resource,) = request.resource_spans
    assert values(resource.resource.attributes) == {"service.name": "on-call"}
    (scope,) = resource.scope_spans
    assert (scope.scope.name, scope.scope.version) == ("ramet", ramet.__version__)
    assert scope.schema_url.startswith("https://opentelemetry.io/schemas/")


async def test_parent_keys_that_make_a_ring_still_make_a_tree(address: str, client: ramet.Client) -> None:
    await tell(
        address,
        client,
        e.step_completed("a", "a", 1, agent_name="a", parent_step_key="b"),
        e.step_completed("b", "b", 2, agent_name="b", parent_step_key="a", step_index=1),
        e.step_completed("own", "own", 3, agent_name="own", parent_step_key="own", step_index=2),
    )
    trace = Trace.read(await export_diagnosis(client, "d"))
    parents = {span.span_id: span.parent_span_id for span in trace.spans}
    for span in trace.spans:
        at, ups = span.span_id, 0
        while parents[at]:
            at, ups = parents[at], ups + 1
            assert ups <= len(parents)


async def test_every_page_of_a_long_diagnosis_is_in_it(address: str, client: ramet.Client) -> None:
    # Each under the one before: as deep as it is long.
    steps = [
        e.step_completed(f"s{n}", f"s{n}", n, agent_name="a", step_index=n, parent_step_key=f"s{n - 1}" if n else "")
        for n in range(2100)
    ]
    for batch in e.split(steps, [700, 700]):
        await tell(address, client, *batch)
    trace = Trace.read(await export_diagnosis(client, "d"))
    assert len(trace.spans) == 1 + 2 * 2100


async def test_a_diagnosis_that_is_not_there_is_not_found(client: ramet.Client) -> None:
    with pytest.raises(ramet.NotFound):
        await export_diagnosis(client, "nobody")
