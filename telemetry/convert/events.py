"""Messages of events, each read by itself: what is wrong with one of them is a refusal, not an error."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet_server.domain.errors import InvalidField, RametError
from telemetry.convert.requests import known, moment, moment_message
from telemetry.rules.event_checks import EventChecks
from telemetry.rules.events import (
    Body,
    Candidate,
    DiagnosisCompleted,
    DiagnosisStarted,
    Event,
    Refusal,
    StepCompleted,
    StepStarted,
    ToolCompleted,
)
from telemetry.rules.values import Feedback, FeedbackValue, Retrieval, RetrievalLayer, RunStatus, SelfEvaluation, Usage

_ENDS = {
    pb.RUN_STATUS_SUCCESS: RunStatus.SUCCESS,
    pb.RUN_STATUS_FAILED: RunStatus.FAILED,
    pb.RUN_STATUS_CANCELLED: RunStatus.CANCELLED,
}
_FEEDBACK = {
    pb.FEEDBACK_VALUE_USEFUL: FeedbackValue.USEFUL,
    pb.FEEDBACK_VALUE_NOT_USEFUL: FeedbackValue.NOT_USEFUL,
}
_FEEDBACK_NUMBERS = {value: number for number, value in _FEEDBACK.items()}
_LAYERS = {
    pb.RETRIEVAL_LAYER_UNSPECIFIED: None,
    pb.RETRIEVAL_LAYER_L0: RetrievalLayer.L0,
    pb.RETRIEVAL_LAYER_L1: RetrievalLayer.L1,
    pb.RETRIEVAL_LAYER_L0_L1: RetrievalLayer.BOTH,
}
_LONGEST_ID_TOLD = 128


def candidates(messages: Iterable[pb.Event], checks: EventChecks, first_seq: int | None = None) -> Sequence[Candidate]:
    """Reads and checks events; those of a stream have seqs, from the first one on."""
    if first_seq is None:
        return [_candidate(message, checks, 0) for message in messages]
    return [_candidate(message, checks, seq) for seq, message in enumerate(messages, first_seq)]


def refusal_message(refusal: Refusal) -> pb.Refusal:
    """Writes a refusal."""
    return pb.Refusal(
        seq=refusal.seq,
        event_id=refusal.event_id,
        reason=refusal.reason,
        field=refusal.field,
        message=refusal.message,
    )


def feedback(message: pb.Feedback) -> Feedback:
    """Reads what a source says."""
    return Feedback(message.source, known(_FEEDBACK, message.value, "feedback.value"), message.comment)


def feedback_message(said: Feedback) -> pb.Feedback:
    """Writes what a source says."""
    return pb.Feedback(
        source=said.source,
        value=_FEEDBACK_NUMBERS[said.value],
        comment=said.comment,
        updated_at=None if said.updated_at is None else moment_message(said.updated_at),
    )


def self_evaluation(message: pb.SelfEvaluation) -> SelfEvaluation:
    """Reads what a model says of its conclusion."""
    return SelfEvaluation(
        confidence=_told(message, "confidence"),
        reasoning=message.reasoning,
        evidence_count=_told(message, "evidence_count"),
        tools_proposed=_told(message, "tools_proposed"),
        tools_accepted=_told(message, "tools_accepted"),
    )


def self_evaluation_message(said: SelfEvaluation) -> pb.SelfEvaluation:
    """Writes what a model says of its conclusion."""
    return pb.SelfEvaluation(
        confidence=said.confidence,
        reasoning=said.reasoning,
        evidence_count=said.evidence_count,
        tools_proposed=said.tools_proposed,
        tools_accepted=said.tools_accepted,
    )


def _candidate(message: pb.Event, checks: EventChecks, seq: int) -> Candidate:
    try:
        return checks.event(_event(message, seq))
    except RametError as error:
        # The id may be what is wrong, and then it may be of any size.
        return Refusal(message.event_id[:_LONGEST_ID_TOLD], error.reason, error.field or "", error.message, seq)


def _event(message: pb.Event, seq: int) -> Event:
    kind = message.WhichOneof("body")
    if kind is None:
        raise InvalidField("body is missing, or one that this server does not know.", field="body")
    if not message.HasField("occurred_at"):
        raise InvalidField("occurred_at is required.", field="occurred_at")
    raw = message.SerializeToString(deterministic=True)
    return Event(
        event_id=message.event_id,
        session_id=message.session_id,
        occurred_at=moment(message.occurred_at, "occurred_at"),
        body=_READERS[kind](getattr(message, kind), f"{kind}."),
        body_hash=hashlib.sha256(raw).hexdigest(),
        size=len(raw),
        seq=seq,
    )


def _diagnosis_started(body: pb.DiagnosisStarted, where: str) -> DiagnosisStarted:
    return DiagnosisStarted(
        query=body.query,
        agent_flow=body.agent_flow,
        conversation_id=body.conversation_id,
        started_at=_moment(body, "started_at", where),
    )


def _diagnosis_completed(body: pb.DiagnosisCompleted, where: str) -> DiagnosisCompleted:
    return DiagnosisCompleted(
        status=known(_ENDS, body.status, where + "status"),
        ended_at=_moment(body, "ended_at", where),
        error_message=body.error_message,
    )


def _step_started(body: pb.StepStarted, where: str) -> StepStarted:
    return StepStarted(
        step_key=body.step_key,
        parent_step_key=body.parent_step_key,
        step_index=body.step_index,
        agent_name=body.agent_name,
        model_input_json=body.model_input_json,
        model=body.model,
        provider=body.provider,
        started_at=_moment(body, "started_at", where),
    )


def _step_completed(body: pb.StepCompleted, where: str) -> StepCompleted:
    return StepCompleted(
        step_key=body.step_key,
        parent_step_key=body.parent_step_key,
        step_index=body.step_index,
        agent_name=body.agent_name,
        model_input_json=body.model_input_json,
        model_output_json=body.model_output_json,
        thought=body.thought,
        has_tool_call=body.has_tool_call,
        status=known(_ENDS, body.status, where + "status"),
        error_message=body.error_message,
        model=body.model,
        provider=body.provider,
        usage=_usage(body.usage) if body.HasField("usage") else None,
        duration_ms=_told(body, "duration_ms"),
        started_at=_moment(body, "started_at", where),
        ended_at=_moment(body, "ended_at", where),
    )


def _usage(message: pb.Usage) -> Usage:
    return Usage(
        input_tokens=_told(message, "input_tokens"),
        cached_tokens=_told(message, "cached_tokens"),
        output_tokens=_told(message, "output_tokens"),
        total_tokens=_told(message, "total_tokens"),
        cost_micros=_told(message, "cost_micros"),
    )


def _tool_completed(body: pb.ToolCompleted, where: str) -> ToolCompleted:
    return ToolCompleted(
        invocation_key=body.invocation_key,
        step_key=body.step_key,
        tool_name=body.tool_name,
        input_params_json=body.input_params_json,
        output_preview=body.output_preview,
        output_length=_told(body, "output_length"),
        is_truncated=body.is_truncated,
        retrieval=_retrieval(body.retrieval, where) if body.HasField("retrieval") else None,
        success=body.success,
        error_message=body.error_message,
        duration_ms=_told(body, "duration_ms"),
        started_at=_moment(body, "started_at", where),
        ended_at=_moment(body, "ended_at", where),
    )


def _retrieval(message: pb.Retrieval, where: str) -> Retrieval:
    return Retrieval(
        layer=known(_LAYERS, message.layer, where + "retrieval.layer"),
        l0_match_count=_told(message, "l0_match_count"),
        l1_match_count=_told(message, "l1_match_count"),
        details_json=message.details_json or None,
    )


_READERS: dict[str, Callable[[Any, str], Body]] = {
    "diagnosis_started": _diagnosis_started,
    "diagnosis_completed": _diagnosis_completed,
    "step_started": _step_started,
    "step_completed": _step_completed,
    "tool_completed": _tool_completed,
    "self_evaluation": lambda body, _: self_evaluation(body),
    "feedback": lambda body, _: feedback(body),
}


def _moment(body: Message, name: str, where: str) -> datetime | None:
    if not body.HasField(name):
        return None
    value: Timestamp = getattr(body, name)
    return moment(value, where + name)


def _told(message: Message, name: str) -> int | None:
    if not message.HasField(name):
        return None
    value: int = getattr(message, name)
    return value
