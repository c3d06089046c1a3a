"""What each event says of its diagnosis, its step or its tool call, as parts that merge in any order.

* Status: PENDING until a start is known, RUNNING until an end is, then the end. Of two ends the later one
  stands; at one moment FAILED over CANCELLED over SUCCESS. What belongs to an end comes with it whole.
* Any other field that several events give: an end's word over a start's, then the later event's. What an
  event leaves empty does not count, so that a late start fills only what is empty.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from telemetry.rules.events import (
    DiagnosisCompleted,
    DiagnosisStarted,
    Event,
    StepCompleted,
    StepStarted,
    ToolCompleted,
)
from telemetry.rules.registers import Part, Stamp
from telemetry.rules.values import Retrieval, RunStatus, SelfEvaluation, Usage

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MILLISECOND = timedelta(milliseconds=1)

_START, _END = 1, 2
_RANKS = {RunStatus.SUCCESS: 1, RunStatus.CANCELLED: 2, RunStatus.FAILED: 3}

LONGEST_MS = 366 * 24 * 3600 * 1000
"""No step, tool call or diagnosis takes longer than a year, in milliseconds."""

Columns = Mapping[str, Any]


def microseconds(moment: datetime) -> int:
    """Returns a moment as microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


def moment_of(value: int) -> datetime:
    """Returns the moment that ``microseconds`` packed."""
    return _EPOCH + value * _MICROSECOND


def diagnosis_parts(event: Event) -> Iterator[Part]:
    """Returns what an event says of its diagnosis' own row; that it is there is said by every event."""
    body = event.body
    if isinstance(body, DiagnosisStarted):
        stamp = _start(event)
        yield Part("status", stamp, {"status": RunStatus.RUNNING, "ended_at": None, "error_message": ""})
        yield Part("started_at", stamp, {"started_at": body.started_at or event.occurred_at})
        yield from _given(stamp, query=body.query, agent_flow=body.agent_flow, conversation_id=body.conversation_id)
    elif isinstance(body, DiagnosisCompleted):
        ended_at = body.ended_at or event.occurred_at
        stamp = _end(event, ended_at, body.status)
        columns = {"status": body.status, "ended_at": ended_at, "error_message": body.error_message}
        yield Part("status", stamp, columns)
    elif isinstance(body, SelfEvaluation):
        yield evaluation_part(body, event.occurred_at, event.event_id)


def evaluation_part(evaluation: SelfEvaluation, moment: datetime, event_id: str) -> Part:
    """Returns what a self-evaluation says of its diagnosis."""
    columns = {"self_evaluation": evaluation, "confidence": evaluation.confidence}
    return Part("self_evaluation", Stamp(_START, microseconds(moment), 0, event_id), columns)


def diagnosis_columns(columns: Columns) -> Columns:
    """Returns the columns with what follows from them."""
    duration_ms, flagged = duration(None, columns.get("started_at"), columns.get("ended_at"))
    return {**columns, "total_duration_ms": duration_ms, "duration_flagged": flagged}


def step_parts(event: Event) -> Iterator[Part]:
    """Returns what an event says of a step."""
    body = event.body
    if isinstance(body, StepStarted):
        stamp = _start(event)
        columns: Columns = {
            "status": RunStatus.RUNNING,
            "ended_at": None,
            "error_message": "",
            "has_tool_call": False,
            "told_duration_ms": None,
        }
        started_at: datetime | None = body.started_at or event.occurred_at
    elif isinstance(body, StepCompleted):
        ended_at = body.ended_at or event.occurred_at
        stamp = _end(event, ended_at, body.status)
        columns = {
            "status": body.status,
            "ended_at": ended_at,
            "error_message": body.error_message,
            "has_tool_call": body.has_tool_call,
            "told_duration_ms": body.duration_ms,
        }
        started_at = body.started_at
        if body.usage is not None and body.usage != Usage():
            yield Part("usage", stamp, _usage(body.usage))
        yield from _given(stamp, model_output=body.model_output_json, thought=body.thought)
    else:
        return
    yield Part("status", stamp, columns)
    yield Part("place", stamp, {"step_index": body.step_index, "agent_name": body.agent_name})
    yield from _given(
        stamp,
        started_at=started_at,
        parent_step_key=body.parent_step_key,
        model_input=body.model_input_json,
        model=body.model,
        provider=body.provider,
    )


def step_columns(columns: Columns) -> Columns:
    """Returns the columns with what follows from them."""
    told = columns.get("told_duration_ms")
    duration_ms, flagged = duration(told, columns.get("started_at"), columns.get("ended_at"))
    return {**columns, "duration_ms": duration_ms, "duration_flagged": flagged}


def tool_parts(event: Event) -> Iterator[Part]:
    """Returns what an event says of a tool call: all of it, since a tool call has one event."""
    body = event.body
    if not isinstance(body, ToolCompleted):
        return
    ended_at = body.ended_at or event.occurred_at
    duration_ms, flagged = duration(body.duration_ms, body.started_at, ended_at)
    retrieval = body.retrieval or Retrieval()
    columns = {
        "step_key": body.step_key or None,
        "tool_name": body.tool_name,
        "input_params": body.input_params_json,
        "output_preview": body.output_preview,
        "output_length": body.output_length,
        "retrieval_layer": retrieval.layer,
        "l0_match_count": retrieval.l0_match_count,
        "l1_match_count": retrieval.l1_match_count,
        "retrieval_details": retrieval.details_json,
        "is_truncated": body.is_truncated,
        "success": body.success,
        "error_message": body.error_message,
        "duration_ms": duration_ms,
        "duration_flagged": flagged,
        "started_at": body.started_at,
        "ended_at": ended_at,
    }
    yield Part("all", _end(event, ended_at, RunStatus.SUCCESS if body.success else RunStatus.FAILED), columns)


def duration(told_ms: int | None, started_at: datetime | None, ended_at: datetime | None) -> tuple[int | None, bool]:
    """Returns a duration in milliseconds, and whether it is impossible and therefore 0; None is unknown."""
    if told_ms is None:
        if started_at is None or ended_at is None:
            return None, False
        told_ms = (ended_at - started_at) // _MILLISECOND
    return (told_ms, False) if 0 <= told_ms <= LONGEST_MS else (0, True)


def _usage(usage: Usage) -> Columns:
    total = usage.total_tokens
    if total is None and usage.input_tokens is not None and usage.output_tokens is not None:
        # Cached tokens are part of the input.
        total = usage.input_tokens + usage.output_tokens
    return {
        "input_tokens": usage.input_tokens,
        "cached_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
        "token_count": total,
        "cost_micros": usage.cost_micros,
    }


def _start(event: Event) -> Stamp:
    return Stamp(_START, microseconds(event.occurred_at), 0, event.event_id)


def _end(event: Event, ended_at: datetime, status: RunStatus) -> Stamp:
    return Stamp(_END, microseconds(ended_at), _RANKS[status], event.event_id)


def _given(stamp: Stamp, **columns: object) -> Iterator[Part]:
    for name, value in columns.items():
        if value not in (None, ""):
            yield Part(name, stamp, {name: value})
