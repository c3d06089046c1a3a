"""What the rows of the three great tables say, and the columns that it takes to tell."""

import json
from typing import Any

from sqlalchemy import Row

from ramet_server.database.tables.telemetry import agent_step, diagnosis_feedback, diagnosis_session, tool_invocation
from telemetry.rules.values import (
    Diagnosis,
    Feedback,
    FeedbackValue,
    Retrieval,
    RetrievalLayer,
    RunStatus,
    SelfEvaluation,
    Step,
    ToolCall,
    Usage,
)

_NOT_READ = ("space_id", "merged_from")

DIAGNOSIS = tuple(c for c in diagnosis_session.c if c.name not in (*_NOT_READ, "confidence", "feedback"))
"""Columns of a Diagnosis."""

STEP = tuple(c for c in agent_step.c if c.name not in _NOT_READ)
"""Columns of a Step."""

TOOL_CALL = tuple(c for c in tool_invocation.c if c.name not in _NOT_READ)
"""Columns of a ToolCall."""

FEEDBACK = tuple(c for c in diagnosis_feedback.c if c.name not in ("space_id", "event_id"))
"""Columns of a Feedback, with its session_id."""


def diagnosis(row: Row[Any]) -> Diagnosis:
    """Reads a row of the columns ``DIAGNOSIS``, without its feedback."""
    values = row._asdict()
    evaluation = values.pop("self_evaluation")
    return Diagnosis(
        **values
        | {
            "status": RunStatus(row.status),
            "error_message": row.error_message or "",
            "self_evaluation": None if evaluation is None else self_evaluation(evaluation),
        }
    )


def step(row: Row[Any]) -> Step:
    """Reads a row of the columns ``STEP``."""
    values = row._asdict()
    usage = Usage(
        input_tokens=values.pop("input_tokens"),
        cached_tokens=values.pop("cached_tokens"),
        output_tokens=values.pop("output_tokens"),
        total_tokens=values.pop("token_count"),
        cost_micros=values.pop("cost_micros"),
    )
    model_input, model_output = values.pop("model_input"), values.pop("model_output")
    return Step(
        **values
        | {
            "status": RunStatus(row.status),
            "error_message": row.error_message or "",
            "usage": usage,
            "model_input_json": model_input,
            "model_output_json": model_output,
        }
    )


def tool_call(row: Row[Any]) -> ToolCall:
    """Reads a row of the columns ``TOOL_CALL``."""
    values = row._asdict()
    layer, params = values.pop("retrieval_layer"), values.pop("input_params")
    retrieval = Retrieval(
        layer=None if layer is None else RetrievalLayer(layer),
        l0_match_count=values.pop("l0_match_count"),
        l1_match_count=values.pop("l1_match_count"),
        details_json=values.pop("retrieval_details"),
    )
    return ToolCall(
        **values
        | {
            "error_message": row.error_message or "",
            "output_preview": row.output_preview or "",
            "retrieval": None if retrieval == Retrieval() else retrieval,
            "input_params_json": params,
        }
    )


def feedback(row: Row[Any]) -> Feedback:
    """Reads a row of the columns ``FEEDBACK``."""
    return Feedback(row.source, FeedbackValue(row.value), row.comment, row.updated_at)


def self_evaluation(text: str) -> SelfEvaluation:
    """Reads what ``self_evaluation_json`` wrote."""
    return SelfEvaluation(**json.loads(text))


def self_evaluation_json(value: SelfEvaluation) -> str:
    """Writes a self-evaluation; what it does not tell is left out."""
    told = {name: getattr(value, name) for name in SelfEvaluation.__dataclass_fields__}
    return json.dumps({name: part for name, part in told.items() if part not in (None, "")}, ensure_ascii=False)
