"""Messages of ramet.telemetry.v1 to values, and back."""

from datetime import datetime
from typing import Any

from google.protobuf.message import Message

from ramet.client import telemetry_values as values
from ramet.client.arguments import build, choice, of_kind
from ramet.client.convert import time_in, time_out
from ramet.client.telemetry_values import Dimension, FeedbackValue, Metric, RetrievalLayer, RunStatus
from ramet.telemetry.v1 import telemetry_pb2 as pb

_STATUSES = {status: pb.RunStatus.Value(f"RUN_STATUS_{status.name}") for status in RunStatus}
_STATUSES_BACK = {number: status for status, number in _STATUSES.items()}
_FEEDBACK = {value: pb.FeedbackValue.Value(f"FEEDBACK_VALUE_{value.name}") for value in FeedbackValue}
_FEEDBACK_BACK = {number: value for value, number in _FEEDBACK.items()}
_LAYERS = {layer: pb.RetrievalLayer.Value(f"RETRIEVAL_LAYER_{layer.name}") for layer in RetrievalLayer}
_LAYERS_BACK = {number: layer for layer, number in _LAYERS.items()}
_METRICS = {metric: pb.Metric.Value(f"METRIC_{metric.name}") for metric in Metric}
_METRICS_BACK = {number: metric for metric, number in _METRICS.items()}


def metric_out(metric: Metric) -> pb.Metric.ValueType:
    """Makes the number of a metric; a plain ``"step_count"`` serves as well."""
    return _METRICS[choice(Metric, metric, "")]


def dimension_out(dimension: Dimension) -> pb.Dimension.ValueType:
    """Makes the number of a dimension; a plain ``"day"`` serves as well."""
    return pb.Dimension.Value(f"DIMENSION_{choice(Dimension, dimension, '').name}")


def filter_out(where: values.DiagnosisFilter) -> pb.DiagnosisFilter:
    """Makes a filter of diagnoses."""
    of_kind(values.DiagnosisFilter, where, "where")
    feedback = None if where.feedback is None else choice(FeedbackValue, where.feedback, "feedback")
    return build(
        pb.DiagnosisFilter,
        created_from=time_out(where.created_from, "created_from"),
        created_before=time_out(where.created_before, "created_before"),
        status=pb.RUN_STATUS_UNSPECIFIED
        if where.status is None
        else _STATUSES[choice(RunStatus, where.status, "status")],
        agent_flow=where.agent_flow,
        feedback=pb.FEEDBACK_VALUE_UNSPECIFIED if feedback is None else _FEEDBACK[feedback],
        min_confidence=where.min_confidence,
        max_confidence=where.max_confidence,
        query_contains=where.query_contains,
        conversation_id=where.conversation_id,
    )


def tool_filter_out(where: values.ToolFilter) -> pb.ToolFilter:
    """Makes a filter of tool calls."""
    of_kind(values.ToolFilter, where, "where")
    layer = None if where.layer is None else choice(RetrievalLayer, where.layer, "layer")
    return build(
        pb.ToolFilter,
        session_id=where.session_id,
        tool_name=where.tool_name,
        layer=pb.RETRIEVAL_LAYER_UNSPECIFIED if layer is None else _LAYERS[layer],
        is_truncated=where.is_truncated,
        success=where.success,
        created_from=time_out(where.created_from, "created_from"),
        created_before=time_out(where.created_before, "created_before"),
    )


def feedback_out(said: values.Feedback) -> pb.Feedback:
    """Makes what a source says."""
    value = _FEEDBACK[choice(FeedbackValue, said.value, "value")]
    return build(pb.Feedback, source=said.source, value=value, comment=said.comment)


def feedback_in(message: pb.Feedback) -> values.Feedback:
    """Reads what a source says."""
    return values.Feedback(message.source, _FEEDBACK_BACK[message.value], message.comment, _time(message, "updated_at"))


def self_evaluation_out(said: values.SelfEvaluation) -> pb.SelfEvaluation:
    """Makes what a model says of its conclusion."""
    return build(pb.SelfEvaluation, **vars(of_kind(values.SelfEvaluation, said, "evaluation")))


def self_evaluation_in(message: pb.SelfEvaluation) -> values.SelfEvaluation:
    """Reads what a model says of its conclusion."""
    return values.SelfEvaluation(
        confidence=_told(message, "confidence"),
        reasoning=message.reasoning,
        evidence_count=_told(message, "evidence_count"),
        tools_proposed=_told(message, "tools_proposed"),
        tools_accepted=_told(message, "tools_accepted"),
    )


def diagnosis_in(message: pb.DiagnosisSession) -> values.Diagnosis:
    """Reads a diagnosis."""
    evaluation = self_evaluation_in(message.self_evaluation) if message.HasField("self_evaluation") else None
    return values.Diagnosis(
        session_id=message.session_id,
        query=message.query,
        status=_STATUSES_BACK[message.status],
        agent_flow=message.agent_flow,
        conversation_id=message.conversation_id or None,
        total_duration_ms=_told(message, "total_duration_ms"),
        duration_flagged=message.duration_flagged,
        total_token_count=_told(message, "total_token_count"),
        steps_with_tokens=message.steps_with_tokens,
        total_cost_micros=_told(message, "total_cost_micros"),
        step_count=message.step_count,
        tool_call_count=message.tool_call_count,
        self_evaluation=evaluation,
        feedback=tuple(map(feedback_in, message.feedback)),
        error_message=message.error_message,
        started_at=_time(message, "started_at"),
        ended_at=_time(message, "ended_at"),
        created_at=_time(message, "created_at"),
        updated_at=_time(message, "updated_at"),
    )


def tool_in(message: pb.ToolInvocation) -> values.ToolInvocation:
    """Reads a tool call."""
    return values.ToolInvocation(
        id=message.id,
        invocation_key=message.invocation_key,
        session_id=message.session_id,
        step_key=message.step_key or None,
        step_id=_told(message, "step_id"),
        tool_name=message.tool_name,
        input_params_json=message.input_params_json,
        output_preview=message.output_preview,
        output_length=_told(message, "output_length"),
        retrieval=_retrieval_in(message.retrieval) if message.HasField("retrieval") else None,
        is_truncated=message.is_truncated,
        duration_ms=_told(message, "duration_ms"),
        duration_flagged=message.duration_flagged,
        success=message.success,
        error_message=message.error_message,
        started_at=_time(message, "started_at"),
        ended_at=_time(message, "ended_at"),
        created_at=_time(message, "created_at"),
    )


def step_in(message: pb.AgentStep) -> values.AgentStep:
    """Reads a step."""
    return values.AgentStep(
        id=message.id,
        session_id=message.session_id,
        step_key=message.step_key,
        parent_step_key=message.parent_step_key or None,
        step_index=message.step_index,
        agent_name=message.agent_name,
        status=_STATUSES_BACK[message.status],
        model_input_json=message.model_input_json or None,
        model_output_json=message.model_output_json or None,
        thought=message.thought,
        has_tool_call=message.has_tool_call,
        duration_ms=_told(message, "duration_ms"),
        duration_flagged=message.duration_flagged,
        usage=_usage_in(message.usage),
        model=message.model,
        provider=message.provider,
        error_message=message.error_message,
        started_at=_time(message, "started_at"),
        ended_at=_time(message, "ended_at"),
        created_at=_time(message, "created_at"),
        tool_invocations=tuple(map(tool_in, message.tool_invocations)),
    )


def chain_in(message: pb.GetDecisionChainResponse) -> values.DecisionChain:
    """Reads a page of a decision chain."""
    return values.DecisionChain(
        diagnosis=diagnosis_in(message.session),
        steps=tuple(map(step_in, message.steps)),
        loose_tool_invocations=tuple(map(tool_in, message.loose_tool_invocations)),
        next_page_token=message.next_page_token or None,
    )


def row_in(message: pb.MetricRow) -> values.MetricRow:
    """Reads a measure."""
    return values.MetricRow(
        metric=_METRICS_BACK[message.metric],
        group=tuple(message.group),
        value=_told(message, "value"),
        sum=_told(message, "sum"),
        covered=message.covered,
        unknown=message.unknown,
        partial=message.partial,
        percentiles=tuple(message.percentiles),
    )


def change_in(message: pb.TailEventsResponse) -> values.Diagnosis | values.AgentStep | values.ToolInvocation | None:
    """Reads what changed; None for a kind of row that this client does not know."""
    kind = message.WhichOneof("row")
    if kind == "session":
        return diagnosis_in(message.session)
    if kind == "step":
        return step_in(message.step)
    return tool_in(message.tool_invocation) if kind == "tool_invocation" else None


def server_info_in(message: pb.GetServerInfoResponse) -> values.TelemetryServerInfo:
    """Reads what the server is and accepts."""
    limits = message.limits
    return values.TelemetryServerInfo(
        version=message.version,
        schema_revision=message.schema_revision,
        max_batch_events=limits.max_batch_events,
        max_batch_bytes=limits.max_batch_bytes,
        max_text_bytes=limits.max_text_bytes,
        max_preview_characters=limits.max_preview_characters,
        abandoned_after_seconds=limits.abandoned_after_seconds,
    )


def _usage_in(message: pb.Usage) -> values.Usage:
    return values.Usage(**{field.name: _told(message, field.name) for field in pb.Usage.DESCRIPTOR.fields})


def _retrieval_in(message: pb.Retrieval) -> values.Retrieval:
    return values.Retrieval(
        layer=_LAYERS_BACK.get(message.layer),
        l0_match_count=_told(message, "l0_match_count"),
        l1_match_count=_told(message, "l1_match_count"),
        details_json=message.details_json or None,
    )


def _told(message: Message, name: str) -> Any:
    return getattr(message, name) if message.HasField(name) else None


def _time(message: Message, name: str) -> datetime | None:
    return time_in(getattr(message, name)) if message.HasField(name) else None
