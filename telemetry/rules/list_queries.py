"""Which diagnoses and tool calls a list admits, and what one call looks at of them."""

from dataclasses import dataclass
from datetime import datetime

from telemetry.rules.pages import Place
from telemetry.rules.values import FeedbackValue, RetrievalLayer, RunStatus


@dataclass(frozen=True, slots=True)
class DiagnosisFilter:
    """Conditions that must all hold; None and empty texts are none."""

    created_from: datetime | None = None
    created_before: datetime | None = None
    status: RunStatus | None = None
    """As shown, ABANDONED among them."""
    agent_flow: str = ""
    feedback: FeedbackValue | None = None
    """The latest word of all sources."""
    min_confidence: int | None = None
    max_confidence: int | None = None
    query_contains: str = ""
    """Compared without regard to the case of ASCII letters."""
    conversation_id: str = ""


@dataclass(frozen=True, slots=True)
class DiagnosisQuery:
    """One page of a list of diagnoses, and how far it may look for it."""

    admits: DiagnosisFilter
    silent_since: datetime
    """What was not heard of after this moment and has not ended is shown as ABANDONED."""
    after: Place | None
    limit: int
    examine: int
    """Most entries of the index to look at where it alone does not decide."""
    max_bytes: int
    """Once the text of the page is larger than this, the page ends."""


@dataclass(frozen=True, slots=True)
class ToolFilter:
    """Conditions that must all hold; None and empty texts are none."""

    session_id: str = ""
    tool_name: str = ""
    layer: RetrievalLayer | None = None
    is_truncated: bool | None = None
    success: bool | None = None
    created_from: datetime | None = None
    created_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class ToolQuery:
    """One page of a list of tool calls, and how far it may look for it."""

    admits: ToolFilter
    after: Place | None
    limit: int
    examine: int
    """Most entries of the index to look at where it alone does not decide."""
    max_bytes: int
    """Once the text of the page is larger than this, the page ends."""
