"""Each method of the telemetry client reaches its RPC on a real server, asyncio and blocking alike."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import grpc
import pytest

import ramet
from ramet.client import (
    AgentStep,
    DiagnosisFilter,
    Dimension,
    FeedbackValue,
    Metric,
    Retrieval,
    RetrievalLayer,
    RunStatus,
    SelfEvaluation,
    ToolFilter,
    Usage,
)
from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet.telemetry.v1.telemetry_pb2_grpc import TelemetryStub
from tests.telemetry import events as e

NOW = datetime.now(UTC)
RANGE = (NOW - timedelta(days=1), NOW + timedelta(days=1))


def tell(address: str, space: str, *events: pb.Event) -> None:
    """Takes events, as a recorder does."""
    with grpc.insecure_channel(address) as channel:
        request = pb.AppendEventsRequest(events=events)
        assert not TelemetryStub(channel).AppendEvents(request, metadata=(("ramet-space", space),)).refusals


def story() -> list[pb.Event]:
    """A diagnosis of two steps."""
    found = pb.Retrieval(layer=pb.RETRIEVAL_LAYER_L0_L1, l0_match_count=2, details_json="{}")
    return [
        e.started("a", query="Why?", agent_flow="CHAT", conversation_id="main"),
        e.step_completed("b", "s0", step_index=0, thought="hm", usage=pb.Usage(input_tokens=3, output_tokens=4)),
        e.step_started("c", "s1", step_index=1, parent_step_key="s0", agent_name="executor"),
        e.tool("d", "t0", step_key="s0", retrieval=found, duration_ms=7),
        e.tool("f", "t1"),
        e.completed("g"),
    ]


async def test_answers_come_back_as_values(client: ramet.Client, address: str, space: str) -> None:
    tell(address, space, *story())
    telemetry = client.telemetry
    said = await telemetry.put_feedback("d", "user", FeedbackValue.NOT_USEFUL, "no", request_id="r")
    assert said == await telemetry.put_feedback("d", "user", FeedbackValue.NOT_USEFUL, "no", request_id="r")
    judged = SelfEvaluation(confidence=90, tools_proposed=2, tools_accepted=1)
    assert await telemetry.put_self_evaluation("d", judged) == judged

    diagnosis = await telemetry.get_diagnosis("d")
    assert (diagnosis.query, diagnosis.status, diagnosis.conversation_id) == ("Why?", RunStatus.SUCCESS, "main")
    assert (diagnosis.total_token_count, diagnosis.total_cost_micros) == (7, None)
    assert (diagnosis.self_evaluation, diagnosis.feedback) == (judged, (said,))
    where = DiagnosisFilter(feedback=FeedbackValue.NOT_USEFUL, min_confidence=81, created_from=RANGE[0])
    assert [each async for each in telemetry.iter_diagnoses(where)] == [diagnosis]
    assert not (await telemetry.list_diagnoses(DiagnosisFilter(status=RunStatus.ABANDONED))).diagnoses

    chain = await telemetry.get_decision_chain("d")
    assert (chain.diagnosis, chain.next_page_token) == (diagnosis, None)
    first, second = chain.steps
    assert (first.usage, first.thought) == (Usage(input_tokens=3, output_tokens=4, total_tokens=7), "hm")
    assert (second.parent_step_key, second.agent_name, second.duration_ms) == ("s0", "executor", None)
    assert [each async for each in telemetry.iter_steps("d")] == list(chain.steps)
    (loose,) = chain.loose_tool_invocations
    (nested,) = first.tool_invocations
    assert nested.retrieval == Retrieval(RetrievalLayer.L0_L1, 2, None, "{}")
    assert {each.id async for each in telemetry.iter_tool_invocations()} == {loose.id, nested.id}
    by_layer = await telemetry.list_tool_invocations(ToolFilter(layer=RetrievalLayer.L0_L1, success=True))
    assert by_layer.invocations == (nested,)

    count, duration = await telemetry.query_metrics(
        [Metric.TOOL_COUNT, Metric.TOOL_DURATION_MS], *RANGE, group_by=[Dimension.TOOL_NAME], percentiles=[50]
    )
    assert (count.group, count.value) == (("lookup_knowledge",), 2)
    assert (duration.value, duration.covered, duration.unknown, duration.percentiles) == (7, 1, 1, (7,))
    with pytest.raises(ramet.NotFound) as caught:
        await telemetry.get_diagnosis("nobody")
    assert caught.value.reason == "DIAGNOSIS_NOT_FOUND"
    assert (await telemetry.get_server_info()).max_preview_characters == 500


async def test_changes_are_told_as_values(client: ramet.Client, address: str, space: str) -> None:
    tail = client.with_options(timeout=60).telemetry.tail("d")
    first = anext(tail)
    task = asyncio.ensure_future(first)
    number = 0
    while not task.done():
        number += 1
        tell(address, space, e.step_completed(f"e{number}", f"s{number}"))
        await asyncio.wait([task], timeout=0.5)
    told = [await task]
    while not isinstance(told[-1], AgentStep):
        told.append(await anext(tail))
    assert {each.session_id for each in told} == {"d"}
    await tail.aclose()


def test_the_blocking_client_answers_alike(address: str, space: str) -> None:
    tell(address, space, *story())
    with ramet.connect_blocking(telemetry=address, space=space) as client:
        (diagnosis,) = client.telemetry.iter_diagnoses()
        assert diagnosis == client.telemetry.get_diagnosis("d")
        assert [step.step_key for step in client.telemetry.iter_steps("d")] == ["s0", "s1"]
        with pytest.raises(RuntimeError, match="no address of the session service"):
            client.sessions.get_session("x")
