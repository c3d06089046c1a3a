"""The events that agents tell, as they come in; None and empty texts are not told."""

from dataclasses import dataclass
from datetime import datetime

from telemetry.rules.values import Feedback, Retrieval, RunStatus, SelfEvaluation, Usage


@dataclass(frozen=True, slots=True)
class DiagnosisStarted:
    """A diagnosis starts."""

    query: str
    agent_flow: str
    conversation_id: str
    started_at: datetime | None


@dataclass(frozen=True, slots=True)
class DiagnosisCompleted:
    """A diagnosis ends."""

    status: RunStatus
    ended_at: datetime | None
    error_message: str


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A step starts."""

    step_key: str
    parent_step_key: str
    step_index: int
    agent_name: str
    model_input_json: str
    model: str
    provider: str
    started_at: datetime | None


@dataclass(frozen=True, slots=True)
class StepCompleted:
    """A step ends; says again what its start said."""

    step_key: str
    parent_step_key: str
    step_index: int
    agent_name: str
    model_input_json: str
    model_output_json: str
    thought: str
    has_tool_call: bool
    status: RunStatus
    error_message: str
    model: str
    provider: str
    usage: Usage | None
    duration_ms: int | None
    started_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class ToolCompleted:
    """A tool call ends."""

    invocation_key: str
    step_key: str
    tool_name: str
    input_params_json: str
    output_preview: str
    output_length: int | None
    is_truncated: bool
    retrieval: Retrieval | None
    success: bool
    error_message: str
    duration_ms: int | None
    started_at: datetime | None
    ended_at: datetime | None


Body = DiagnosisStarted | DiagnosisCompleted | StepStarted | StepCompleted | ToolCompleted | SelfEvaluation | Feedback
"""What happened."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened in a diagnosis."""

    event_id: str
    session_id: str
    occurred_at: datetime
    """The client's time."""
    body: Body
    body_hash: str
    """What two events share if they say the same; made of all of them."""
    size: int = 0
    """Of the message, in bytes."""
    seq: int = 0
    """On the stream; 0 at the unary door."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An event that was not taken, and never will be as it is."""

    event_id: str
    reason: str
    field: str
    """Empty: no field is at fault."""
    message: str
    seq: int = 0
    """On the stream; 0 at the unary door."""


Candidate = Event | Refusal
"""An event that was read and checked, or what is wrong with it."""
