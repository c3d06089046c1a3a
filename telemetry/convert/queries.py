"""Requests of the half that answers."""

from datetime import datetime

from google.protobuf.message import Message

from ramet.telemetry.v1 import telemetry_pb2 as pb
from telemetry.convert.requests import known, moment, refuse_unknown_fields
from telemetry.rules.list_queries import DiagnosisFilter, ToolFilter
from telemetry.rules.metric_queries import Dimension, Metric
from telemetry.rules.metrics import MetricsWish
from telemetry.rules.pages import PageWish
from telemetry.rules.values import FeedbackValue, RetrievalLayer, RunStatus

_STATUSES: dict[int, RunStatus | None] = {
    pb.RUN_STATUS_UNSPECIFIED: None,
    **{number: RunStatus(name.removeprefix("RUN_STATUS_")) for name, number in pb.RunStatus.items() if number},
}
_FEEDBACK: dict[int, FeedbackValue | None] = {
    pb.FEEDBACK_VALUE_UNSPECIFIED: None,
    pb.FEEDBACK_VALUE_USEFUL: FeedbackValue.USEFUL,
    pb.FEEDBACK_VALUE_NOT_USEFUL: FeedbackValue.NOT_USEFUL,
}
_LAYERS: dict[int, RetrievalLayer | None] = {
    pb.RETRIEVAL_LAYER_UNSPECIFIED: None,
    pb.RETRIEVAL_LAYER_L0: RetrievalLayer.L0,
    pb.RETRIEVAL_LAYER_L1: RetrievalLayer.L1,
    pb.RETRIEVAL_LAYER_L0_L1: RetrievalLayer.BOTH,
}
_METRICS: dict[int, Metric] = {
    number: Metric(name.removeprefix("METRIC_")) for name, number in pb.Metric.items() if number
}
_DIMENSIONS: dict[int, Dimension] = {
    number: Dimension(name.removeprefix("DIMENSION_")) for name, number in pb.Dimension.items() if number
}
METRIC_NUMBERS = {metric: pb.Metric.ValueType(number) for number, metric in _METRICS.items()}
"""The number of each metric in messages."""


def page_wish(
    request: pb.ListDiagnosisSessionsRequest | pb.ListToolInvocationsRequest | pb.GetDecisionChainRequest,
) -> PageWish:
    """Reads which page is wanted."""
    return PageWish(request.page_size, request.page_token)


def diagnosis_filter(request: pb.ListDiagnosisSessionsRequest) -> DiagnosisFilter:
    """Reads which diagnoses are wanted; a condition that this server does not know is refused."""
    admits = request.filter
    refuse_unknown_fields(admits, "filter")
    return DiagnosisFilter(
        created_from=_moment(admits, "created_from", "filter."),
        created_before=_moment(admits, "created_before", "filter."),
        status=known(_STATUSES, admits.status, "filter.status"),
        agent_flow=admits.agent_flow,
        feedback=known(_FEEDBACK, admits.feedback, "filter.feedback"),
        min_confidence=admits.min_confidence if admits.HasField("min_confidence") else None,
        max_confidence=admits.max_confidence if admits.HasField("max_confidence") else None,
        query_contains=admits.query_contains,
        conversation_id=admits.conversation_id,
    )


def tool_filter(request: pb.ListToolInvocationsRequest) -> ToolFilter:
    """Reads which tool calls are wanted; a condition that this server does not know is refused."""
    admits = request.filter
    refuse_unknown_fields(admits, "filter")
    return ToolFilter(
        session_id=admits.session_id,
        tool_name=admits.tool_name,
        layer=known(_LAYERS, admits.layer, "filter.layer"),
        is_truncated=admits.is_truncated if admits.HasField("is_truncated") else None,
        success=admits.success if admits.HasField("success") else None,
        created_from=_moment(admits, "created_from", "filter."),
        created_before=_moment(admits, "created_before", "filter."),
    )


def metrics_wish(request: pb.QueryMetricsRequest) -> MetricsWish:
    """Reads what is to be measured; a condition that this server does not know is refused."""
    refuse_unknown_fields(request, "request")
    return MetricsWish(
        metrics=tuple(known(_METRICS, each, f"metrics[{place}]") for place, each in enumerate(request.metrics)),
        created_from=_moment(request, "created_from"),
        created_before=_moment(request, "created_before"),
        group_by=tuple(known(_DIMENSIONS, each, f"group_by[{place}]") for place, each in enumerate(request.group_by)),
        agent_flow=request.agent_flow,
        agent_name=request.agent_name,
        tool_name=request.tool_name,
        percentiles=tuple(request.percentiles),
    )


def _moment(message: Message, name: str, where: str = "") -> datetime | None:
    return moment(getattr(message, name), where + name) if message.HasField(name) else None
