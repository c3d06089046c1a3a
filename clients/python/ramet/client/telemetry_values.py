"""What the contract of telemetry speaks of, as small frozen values. None is unknown, never 0."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

__all__ = [
    "AgentStep",
    "DecisionChain",
    "Diagnosis",
    "DiagnosisFilter",
    "DiagnosisPage",
    "Dimension",
    "Feedback",
    "FeedbackValue",
    "Metric",
    "MetricRow",
    "Retrieval",
    "RetrievalLayer",
    "RunStatus",
    "SelfEvaluation",
    "TelemetryServerInfo",
    "ToolFilter",
    "ToolInvocation",
    "ToolInvocationPage",
    "Usage",
]


class RunStatus(enum.StrEnum):
    """How a diagnosis or a step stands."""

    PENDING = "pending"
    """Known by name only: a part of it came before its start."""
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"
    """Nothing was heard of it for a set time; a late end revives it."""


class FeedbackValue(enum.StrEnum):
    """What a source says of a diagnosis."""

    USEFUL = "useful"
    NOT_USEFUL = "not_useful"


class RetrievalLayer(enum.StrEnum):
    """Which layers of a knowledge base a lookup hit."""

    L0 = "L0"
    L1 = "L1"
    L0_L1 = "L0+L1"


class Metric(enum.StrEnum):
    """What is measured."""

    DIAGNOSIS_COUNT = "diagnosis_count"
    DIAGNOSIS_DURATION_MS = "diagnosis_duration_ms"
    DIAGNOSIS_TOKENS = "diagnosis_tokens"
    DIAGNOSIS_COST_MICROS = "diagnosis_cost_micros"
    SUCCESS_RATE = "success_rate"
    SATISFACTION = "satisfaction"
    TOOL_ACCEPTANCE = "tool_acceptance"
    CONFIDENCE = "confidence"
    STEP_COUNT = "step_count"
    STEP_DURATION_MS = "step_duration_ms"
    STEP_TOKENS = "step_tokens"
    TOOL_COUNT = "tool_count"
    TOOL_DURATION_MS = "tool_duration_ms"
    TOOL_SUCCESS_RATE = "tool_success_rate"
    L0_HIT_RATE = "l0_hit_rate"
    TRUNCATION_RATE = "truncation_rate"


class Dimension(enum.StrEnum):
    """What measures are grouped by."""

    AGENT_FLOW = "agent_flow"
    AGENT_NAME = "agent_name"
    """For measures of steps."""
    TOOL_NAME = "tool_name"
    """For measures of tool calls."""
    RETRIEVAL_LAYER = "retrieval_layer"
    """For measures of tool calls."""
    MODEL = "model"
    """For measures of steps."""
    HOUR = "hour"
    """UTC, as 2026-11-30T22."""
    DAY = "day"
    """UTC, as 2026-11-30."""


@dataclass(frozen=True)
class Usage:
    """Tokens and cost of one model call."""

    input_tokens: int | None = None
    """The cached ones among them."""
    cached_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cost_micros: int | None = None
    """In millionths of a US dollar."""


@dataclass(frozen=True)
class SelfEvaluation:
    """What the model says of its own conclusion."""

    confidence: int | None = None
    """0 to 100."""
    reasoning: str = ""
    evidence_count: int | None = None
    tools_proposed: int | None = None
    tools_accepted: int | None = None


@dataclass(frozen=True)
class Feedback:
    """What one source says of a diagnosis."""

    source: str
    value: FeedbackValue
    comment: str = ""
    updated_at: datetime | None = None


@dataclass(frozen=True)
class Retrieval:
    """What a knowledge lookup found."""

    layer: RetrievalLayer | None = None
    l0_match_count: int | None = None
    l1_match_count: int | None = None
    details_json: str | None = None


@dataclass(frozen=True)
class Diagnosis:
    """One run of one or more agents on one question, with its totals."""

    session_id: str
    query: str = ""
    status: RunStatus = RunStatus.PENDING
    agent_flow: str = ""
    conversation_id: str | None = None
    """The session whose conversation it belongs to."""
    total_duration_ms: int | None = None
    """Wall clock."""
    duration_flagged: bool = False
    """It ended before it started; the duration is then 0 and left out of averages."""
    total_token_count: int | None = None
    """Of its steps, as far as known."""
    steps_with_tokens: int = 0
    total_cost_micros: int | None = None
    """In millionths of a US dollar, as far as known."""
    step_count: int = 0
    tool_call_count: int = 0
    self_evaluation: SelfEvaluation | None = None
    feedback: tuple[Feedback, ...] = ()
    """One per source, by source; the first 100."""
    error_message: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    created_at: datetime | None = None
    """The server's time of its first event."""
    updated_at: datetime | None = None


@dataclass(frozen=True)
class ToolInvocation:
    """A tool call."""

    id: int
    invocation_key: str
    session_id: str
    step_key: str | None = None
    step_id: int | None = None
    tool_name: str = ""
    input_params_json: str = "{}"
    output_preview: str = ""
    """The first 500 characters."""
    output_length: int | None = None
    """Of the whole output, in characters."""
    retrieval: Retrieval | None = None
    is_truncated: bool = False
    duration_ms: int | None = None
    duration_flagged: bool = False
    success: bool = True
    error_message: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    created_at: datetime | None = None


@dataclass(frozen=True)
class AgentStep:
    """One call of a model by one agent."""

    id: int
    session_id: str
    step_key: str
    parent_step_key: str | None = None
    """The step that it runs under."""
    step_index: int = 0
    """From 0, over all agents of the diagnosis."""
    agent_name: str = ""
    status: RunStatus = RunStatus.PENDING
    model_input_json: str | None = None
    model_output_json: str | None = None
    thought: str = ""
    has_tool_call: bool = False
    duration_ms: int | None = None
    duration_flagged: bool = False
    usage: Usage = Usage()
    model: str = ""
    provider: str = ""
    error_message: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    created_at: datetime | None = None
    tool_invocations: tuple[ToolInvocation, ...] = ()
    """Filled by ``get_decision_chain``."""


@dataclass(frozen=True)
class DiagnosisFilter:
    """Which diagnoses are meant; all given conditions must hold."""

    created_from: datetime | None = None
    created_before: datetime | None = None
    status: RunStatus | None = None
    agent_flow: str = ""
    feedback: FeedbackValue | None = None
    """The latest word of all sources."""
    min_confidence: int | None = None
    max_confidence: int | None = None
    query_contains: str = ""
    """Without regard to ASCII case; needs ``created_from``."""
    conversation_id: str = ""


@dataclass(frozen=True)
class ToolFilter:
    """Which tool calls are meant; all given conditions must hold."""

    session_id: str = ""
    tool_name: str = ""
    layer: RetrievalLayer | None = None
    is_truncated: bool | None = None
    success: bool | None = None
    created_from: datetime | None = None
    created_before: datetime | None = None


@dataclass(frozen=True)
class DiagnosisPage:
    """One page of diagnoses, newest first."""

    diagnoses: tuple[Diagnosis, ...]
    next_page_token: str | None
    """None: this was the last page."""


@dataclass(frozen=True)
class ToolInvocationPage:
    """One page of tool calls, newest first."""

    invocations: tuple[ToolInvocation, ...]
    next_page_token: str | None
    """None: this was the last page."""


@dataclass(frozen=True)
class DecisionChain:
    """One page of a diagnosis as it went."""

    diagnosis: Diagnosis
    steps: tuple[AgentStep, ...]
    """By step_index; ``parent_step_key`` makes the tree of agents."""
    loose_tool_invocations: tuple[ToolInvocation, ...]
    """Tool calls that belong to no step that has come; only on the first page."""
    next_page_token: str | None
    """None: this was the last page."""


@dataclass(frozen=True)
class MetricRow:
    """One measure of one group."""

    metric: Metric
    group: tuple[str, ...] = ()
    """One text per dimension asked for; empty is unknown."""
    value: float | None = None
    """A count, an average or a share; None where nothing had a value."""
    sum: float | None = None
    covered: int = 0
    """Rows that had a value."""
    unknown: int = 0
    """Rows that had none, and flagged ones."""
    partial: int = 0
    """Of the covered, those that know only a part: of a diagnosis's tokens."""
    percentiles: Sequence[float] = ()
    """In the order of the request, by nearest rank."""


@dataclass(frozen=True)
class TelemetryServerInfo:
    """What the server is and accepts."""

    version: str
    schema_revision: str
    max_batch_events: int
    max_batch_bytes: int
    max_text_bytes: int
    max_preview_characters: int
    abandoned_after_seconds: int
