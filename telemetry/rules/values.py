"""The values that rules, store and messages share: diagnoses, steps and tool calls as they are kept."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class RunStatus(StrEnum):
    """How a diagnosis or a step stands."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    ABANDONED = "ABANDONED"
    """Never stored: shown where nothing was heard of a diagnosis for a set time; see ``shown_status``."""


ENDS = frozenset({RunStatus.SUCCESS, RunStatus.FAILED, RunStatus.CANCELLED})
"""The states in which a diagnosis or a step has ended."""


class FeedbackValue(StrEnum):
    """What a source says of a diagnosis."""

    USEFUL = "useful"
    NOT_USEFUL = "not_useful"


class RetrievalLayer(StrEnum):
    """Which layers of a knowledge base a lookup hit."""

    L0 = "L0"
    L1 = "L1"
    BOTH = "L0+L1"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and cost of one model call; None is unknown."""

    input_tokens: int | None = None
    """The cached ones among them."""
    cached_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cost_micros: int | None = None
    """In millionths of a US dollar."""


@dataclass(frozen=True, slots=True)
class SelfEvaluation:
    """What the model says of its own conclusion; None is not told."""

    confidence: int | None = None
    """0 to 100."""
    reasoning: str = ""
    evidence_count: int | None = None
    tools_proposed: int | None = None
    tools_accepted: int | None = None


@dataclass(frozen=True, slots=True)
class Feedback:
    """What one source says of a diagnosis."""

    source: str
    value: FeedbackValue
    comment: str = ""
    updated_at: datetime | None = None
    """When it was said."""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What a knowledge lookup found; None is unknown."""

    layer: RetrievalLayer | None = None
    l0_match_count: int | None = None
    l1_match_count: int | None = None
    details_json: str | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A diagnosis with its totals."""

    id: int
    session_id: str
    query: str
    status: RunStatus
    """As stored; ``shown_status`` tells what a reader sees."""
    agent_flow: str | None
    conversation_id: str | None
    total_duration_ms: int | None
    duration_flagged: bool
    total_token_count: int | None
    steps_with_tokens: int
    total_cost_micros: int | None
    step_count: int
    tool_call_count: int
    self_evaluation: SelfEvaluation | None
    error_message: str
    started_at: datetime | None
    ended_at: datetime | None
    last_heard_at: datetime
    created_at: datetime
    updated_at: datetime
    feedback: tuple[Feedback, ...] = ()
    """By source; filled by who reads it."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a diagnosis."""

    id: int
    session_id: str
    step_key: str
    parent_step_key: str | None
    step_index: int
    agent_name: str
    status: RunStatus
    model_input_json: str | None
    model_output_json: str | None
    thought: str | None
    has_tool_call: bool
    duration_ms: int | None
    duration_flagged: bool
    usage: Usage
    model: str | None
    provider: str | None
    error_message: str
    started_at: datetime | None
    ended_at: datetime | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call of a diagnosis."""

    id: int
    session_id: str
    invocation_key: str
    step_key: str | None
    step_id: int | None
    """Of the step's row, once that step has come."""
    tool_name: str
    input_params_json: str
    output_preview: str
    output_length: int | None
    retrieval: Retrieval | None
    is_truncated: bool
    duration_ms: int | None
    duration_flagged: bool
    success: bool
    error_message: str
    started_at: datetime | None
    ended_at: datetime | None
    created_at: datetime
    updated_at: datetime


def shown_status(status: RunStatus, last_heard_at: datetime, now: datetime, abandoned_after_s: float) -> RunStatus:
    """Returns what a reader sees: ABANDONED in place of a run of which nothing was heard for too long.

    A step is judged by the ``last_heard_at`` of its diagnosis.
    """
    if status in ENDS or (now - last_heard_at).total_seconds() < abandoned_after_s:
        return status
    return RunStatus.ABANDONED
