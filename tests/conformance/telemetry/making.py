"""Telemetry in few words: events told at the unary door, and answers asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet.telemetry.v1.telemetry_pb2_grpc import TelemetryStub


def tell(telemetry: TelemetryStub, *events: pb.Event) -> None:
    """Tells events, none of which may be refused."""
    reply = telemetry.AppendEvents(pb.AppendEventsRequest(events=events))
    assert (list(reply.refusals), reply.accepted) == ([], len(events))


def get(telemetry: TelemetryStub, session_id: str = "d") -> pb.DiagnosisSession:
    """Reads a diagnosis."""
    return telemetry.GetDiagnosisSession(pb.GetDiagnosisSessionRequest(session_id=session_id))


def chain(telemetry: TelemetryStub, session_id: str = "d", **fields: Any) -> pb.GetDecisionChainResponse:
    """Reads a page of a decision chain."""
    return telemetry.GetDecisionChain(pb.GetDecisionChainRequest(session_id=session_id, **fields))


def steps(telemetry: TelemetryStub, session_id: str = "d") -> Sequence[pb.AgentStep]:
    """Reads all steps of a short diagnosis."""
    return chain(telemetry, session_id, page_size=1000).steps


def listed(telemetry: TelemetryStub, **conditions: Any) -> list[str]:
    """Lists the ids of diagnoses, newest first."""
    request = pb.ListDiagnosisSessionsRequest(filter=pb.DiagnosisFilter(**conditions), page_size=1000)
    return [each.session_id for each in telemetry.ListDiagnosisSessions(request).sessions]


def measure(telemetry: TelemetryStub, *names: str, **fields: Any) -> Sequence[pb.MetricRow]:
    """Measures by the names of metrics, over all of these years."""
    wanted = {
        "metrics": [pb.Metric.Value(f"METRIC_{name}") for name in names],
        # As far apart as they may lie, around the clock of whatever machine this runs on.
        "created_from": days_from_now(telemetry, -200),
        "created_before": days_from_now(telemetry, 200),
        **fields,
    }
    return telemetry.QueryMetrics(pb.QueryMetricsRequest(**wanted)).rows


def days_from_now(telemetry: TelemetryStub, days: int) -> dict[str, int]:
    """Returns a moment so many days from the server's own time, told by a diagnosis that was just made."""
    request = pb.ListDiagnosisSessionsRequest(page_size=1)
    newest = telemetry.ListDiagnosisSessions(request).sessions[0]
    return {"seconds": newest.created_at.seconds + days * 86_400}
