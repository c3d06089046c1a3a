"""Replies of the half that answers."""

from collections.abc import Sequence
from datetime import datetime

from google.protobuf.timestamp_pb2 import Timestamp

from ramet.telemetry.v1 import telemetry_pb2 as pb
from telemetry.convert.events import feedback_message, self_evaluation_message
from telemetry.convert.queries import METRIC_NUMBERS
from telemetry.convert.requests import moment_message
from telemetry.rules.chain import Chain
from telemetry.rules.metrics import MetricRow
from telemetry.rules.pages import Page
from telemetry.rules.values import Diagnosis, Retrieval, RetrievalLayer, RunStatus, Step, ToolCall, Usage

_STATUS_NUMBERS = {status: pb.RunStatus.Value(f"RUN_STATUS_{status}") for status in RunStatus}
_LAYER_NUMBERS = {
    None: pb.RETRIEVAL_LAYER_UNSPECIFIED,
    RetrievalLayer.L0: pb.RETRIEVAL_LAYER_L0,
    RetrievalLayer.L1: pb.RETRIEVAL_LAYER_L1,
    RetrievalLayer.BOTH: pb.RETRIEVAL_LAYER_L0_L1,
}


def diagnosis_message(diagnosis: Diagnosis) -> pb.DiagnosisSession:
    """Writes a diagnosis."""
    evaluation = diagnosis.self_evaluation
    return pb.DiagnosisSession(
        session_id=diagnosis.session_id,
        query=diagnosis.query,
        status=_STATUS_NUMBERS[diagnosis.status],
        agent_flow=diagnosis.agent_flow or "",
        conversation_id=diagnosis.conversation_id or "",
        total_duration_ms=diagnosis.total_duration_ms,
        duration_flagged=diagnosis.duration_flagged,
        total_token_count=diagnosis.total_token_count,
        steps_with_tokens=diagnosis.steps_with_tokens,
        total_cost_micros=diagnosis.total_cost_micros,
        step_count=diagnosis.step_count,
        tool_call_count=diagnosis.tool_call_count,
        self_evaluation=None if evaluation is None else self_evaluation_message(evaluation),
        feedback=map(feedback_message, diagnosis.feedback),
        error_message=diagnosis.error_message,
        started_at=_moment(diagnosis.started_at),
        ended_at=_moment(diagnosis.ended_at),
        created_at=moment_message(diagnosis.created_at),
        updated_at=moment_message(diagnosis.updated_at),
    )


def step_message(step: Step, tools: Sequence[ToolCall] = ()) -> pb.AgentStep:
    """Writes a step, with its tool calls where they are told."""
    return pb.AgentStep(
        id=step.id,
        session_id=step.session_id,
        step_key=step.step_key,
        parent_step_key=step.parent_step_key or "",
        step_index=step.step_index,
        agent_name=step.agent_name,
        status=_STATUS_NUMBERS[step.status],
        model_input_json=step.model_input_json or "",
        model_output_json=step.model_output_json or "",
        thought=step.thought or "",
        has_tool_call=step.has_tool_call,
        duration_ms=step.duration_ms,
        duration_flagged=step.duration_flagged,
        usage=None if step.usage == Usage() else _usage_message(step.usage),
        model=step.model or "",
        provider=step.provider or "",
        error_message=step.error_message,
        started_at=_moment(step.started_at),
        ended_at=_moment(step.ended_at),
        created_at=moment_message(step.created_at),
        tool_invocations=map(tool_message, tools),
    )


def tool_message(tool: ToolCall) -> pb.ToolInvocation:
    """Writes a tool call."""
    return pb.ToolInvocation(
        id=tool.id,
        invocation_key=tool.invocation_key,
        session_id=tool.session_id,
        step_key=tool.step_key or "",
        step_id=tool.step_id,
        tool_name=tool.tool_name,
        input_params_json=tool.input_params_json,
        output_preview=tool.output_preview,
        output_length=tool.output_length,
        retrieval=None if tool.retrieval is None else _retrieval_message(tool.retrieval),
        is_truncated=tool.is_truncated,
        duration_ms=tool.duration_ms,
        duration_flagged=tool.duration_flagged,
        success=tool.success,
        error_message=tool.error_message,
        started_at=_moment(tool.started_at),
        ended_at=_moment(tool.ended_at),
        created_at=moment_message(tool.created_at),
    )


def diagnoses_message(page: Page[Diagnosis]) -> pb.ListDiagnosisSessionsResponse:
    """Writes a page of diagnoses."""
    return pb.ListDiagnosisSessionsResponse(sessions=map(diagnosis_message, page.rows), next_page_token=page.next_token)


def tools_message(page: Page[ToolCall]) -> pb.ListToolInvocationsResponse:
    """Writes a page of tool calls."""
    return pb.ListToolInvocationsResponse(invocations=map(tool_message, page.rows), next_page_token=page.next_token)


def chain_message(chain: Chain) -> pb.GetDecisionChainResponse:
    """Writes a page of a decision chain."""
    return pb.GetDecisionChainResponse(
        session=diagnosis_message(chain.diagnosis),
        steps=(step_message(each.step, each.tools) for each in chain.steps),
        loose_tool_invocations=map(tool_message, chain.loose),
        next_page_token=chain.next_token,
    )


def metrics_message(rows: Sequence[MetricRow]) -> pb.QueryMetricsResponse:
    """Writes measures."""
    return pb.QueryMetricsResponse(
        rows=(
            pb.MetricRow(
                metric=METRIC_NUMBERS[row.metric],
                group=row.group,
                value=row.value,
                sum=row.sum,
                covered=row.covered,
                unknown=row.unknown,
                partial=row.partial,
                percentiles=row.percentiles,
            )
            for row in rows
        )
    )


def change_message(row: Diagnosis | Step | ToolCall) -> pb.TailEventsResponse:
    """Writes a row that changed."""
    if isinstance(row, Diagnosis):
        return pb.TailEventsResponse(session=diagnosis_message(row))
    if isinstance(row, Step):
        return pb.TailEventsResponse(step=step_message(row))
    return pb.TailEventsResponse(tool_invocation=tool_message(row))


def _usage_message(usage: Usage) -> pb.Usage:
    return pb.Usage(
        input_tokens=usage.input_tokens,
        cached_tokens=usage.cached_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.total_tokens,
        cost_micros=usage.cost_micros,
    )


def _retrieval_message(retrieval: Retrieval) -> pb.Retrieval:
    return pb.Retrieval(
        layer=_LAYER_NUMBERS[retrieval.layer],
        l0_match_count=retrieval.l0_match_count,
        l1_match_count=retrieval.l1_match_count,
        details_json=retrieval.details_json or "",
    )


def _moment(value: datetime | None) -> Timestamp | None:
    return None if value is None else moment_message(value)
