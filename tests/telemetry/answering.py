"""Answers as tests ask for them, in few words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ramet.telemetry.v1 import telemetry_pb2 as pb
from tests.telemetry.world import World


def get(world: World, session_id: str = "d") -> pb.DiagnosisSession:
    """Reads a diagnosis."""
    return world.service.GetDiagnosisSession(pb.GetDiagnosisSessionRequest(session_id=session_id), world.call)


def chain(world: World, session_id: str = "d", **fields: Any) -> pb.GetDecisionChainResponse:
    """Reads one page of a decision chain."""
    return world.service.GetDecisionChain(pb.GetDecisionChainRequest(session_id=session_id, **fields), world.call)


def diagnoses(world: World, **conditions: Any) -> Sequence[pb.DiagnosisSession]:
    """Lists one page of diagnoses, which must be all."""
    request = pb.ListDiagnosisSessionsRequest(filter=pb.DiagnosisFilter(**conditions))
    reply = world.service.ListDiagnosisSessions(request, world.call)
    assert not reply.next_page_token
    return reply.sessions


def tools(world: World, **conditions: Any) -> Sequence[pb.ToolInvocation]:
    """Lists one page of tool calls, which must be all."""
    request = pb.ListToolInvocationsRequest(filter=pb.ToolFilter(**conditions))
    reply = world.service.ListToolInvocations(request, world.call)
    assert not reply.next_page_token
    return reply.invocations


def metrics(world: World, *names: str, **fields: Any) -> Sequence[pb.MetricRow]:
    """Measures by the names of metrics, over all time that clocks of tests know."""
    wanted = {
        "metrics": [pb.Metric.Value(f"METRIC_{name}") for name in names],
        "created_from": {"seconds": int(world.clock.now().timestamp()) - 100 * 86_400},
        "created_before": {"seconds": int(world.clock.now().timestamp()) + 100 * 86_400},
        **fields,
    }
    if "group_by" in fields:
        wanted["group_by"] = [pb.Dimension.Value(f"DIMENSION_{name}") for name in fields["group_by"]]
    return world.service.QueryMetrics(pb.QueryMetricsRequest(**wanted), world.call).rows


def row(world: World, name: str, **fields: Any) -> pb.MetricRow:
    """The only row of one measure."""
    (found,) = metrics(world, name, **fields)
    return found


def pages(world: World, request: Any) -> Iterator[Any]:
    """Follows the pages of a list to its end."""
    name = type(request).__name__.removesuffix("Request")
    while True:
        page = getattr(world.service, name)(request, world.call)
        yield page
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token
