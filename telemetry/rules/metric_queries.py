"""What can be measured, of which rows, and by what it is grouped."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Source(StrEnum):
    """Of which rows a metric is measured."""

    DIAGNOSIS = "DIAGNOSIS"
    STEP = "STEP"
    TOOL = "TOOL"


class Kind(StrEnum):
    """What the number of a metric is."""

    COUNT = "COUNT"
    AVERAGE = "AVERAGE"
    """Of a confidence."""
    AMOUNT = "AMOUNT"
    """An average of what can be added up, and has percentiles."""
    SHARE = "SHARE"
    RATIO = "RATIO"
    """A sum over another sum."""


class Metric(StrEnum):
    """What is measured; see the contract."""

    DIAGNOSIS_COUNT = "DIAGNOSIS_COUNT"
    DIAGNOSIS_DURATION_MS = "DIAGNOSIS_DURATION_MS"
    DIAGNOSIS_TOKENS = "DIAGNOSIS_TOKENS"
    DIAGNOSIS_COST_MICROS = "DIAGNOSIS_COST_MICROS"
    SUCCESS_RATE = "SUCCESS_RATE"
    SATISFACTION = "SATISFACTION"
    TOOL_ACCEPTANCE = "TOOL_ACCEPTANCE"
    CONFIDENCE = "CONFIDENCE"
    STEP_COUNT = "STEP_COUNT"
    STEP_DURATION_MS = "STEP_DURATION_MS"
    STEP_TOKENS = "STEP_TOKENS"
    TOOL_COUNT = "TOOL_COUNT"
    TOOL_DURATION_MS = "TOOL_DURATION_MS"
    TOOL_SUCCESS_RATE = "TOOL_SUCCESS_RATE"
    L0_HIT_RATE = "L0_HIT_RATE"
    TRUNCATION_RATE = "TRUNCATION_RATE"


KINDS = {
    Metric.DIAGNOSIS_COUNT: (Source.DIAGNOSIS, Kind.COUNT),
    Metric.DIAGNOSIS_DURATION_MS: (Source.DIAGNOSIS, Kind.AMOUNT),
    Metric.DIAGNOSIS_TOKENS: (Source.DIAGNOSIS, Kind.AMOUNT),
    Metric.DIAGNOSIS_COST_MICROS: (Source.DIAGNOSIS, Kind.AMOUNT),
    Metric.SUCCESS_RATE: (Source.DIAGNOSIS, Kind.SHARE),
    Metric.SATISFACTION: (Source.DIAGNOSIS, Kind.SHARE),
    Metric.TOOL_ACCEPTANCE: (Source.DIAGNOSIS, Kind.RATIO),
    Metric.CONFIDENCE: (Source.DIAGNOSIS, Kind.AVERAGE),
    Metric.STEP_COUNT: (Source.STEP, Kind.COUNT),
    Metric.STEP_DURATION_MS: (Source.STEP, Kind.AMOUNT),
    Metric.STEP_TOKENS: (Source.STEP, Kind.AMOUNT),
    Metric.TOOL_COUNT: (Source.TOOL, Kind.COUNT),
    Metric.TOOL_DURATION_MS: (Source.TOOL, Kind.AMOUNT),
    Metric.TOOL_SUCCESS_RATE: (Source.TOOL, Kind.SHARE),
    Metric.L0_HIT_RATE: (Source.TOOL, Kind.SHARE),
    Metric.TRUNCATION_RATE: (Source.TOOL, Kind.SHARE),
}
"""Of which rows each metric is, and what its number is."""


class Dimension(StrEnum):
    """What metrics are grouped by."""

    AGENT_FLOW = "AGENT_FLOW"
    AGENT_NAME = "AGENT_NAME"
    TOOL_NAME = "TOOL_NAME"
    RETRIEVAL_LAYER = "RETRIEVAL_LAYER"
    MODEL = "MODEL"
    HOUR = "HOUR"
    DAY = "DAY"


_OF_ALL = frozenset({Dimension.AGENT_FLOW, Dimension.HOUR, Dimension.DAY})

DIMENSIONS = {
    Source.DIAGNOSIS: _OF_ALL,
    Source.STEP: _OF_ALL | {Dimension.AGENT_NAME, Dimension.MODEL},
    Source.TOOL: _OF_ALL | {Dimension.TOOL_NAME, Dimension.RETRIEVAL_LAYER},
}
"""By what the rows of each source can be grouped."""


@dataclass(frozen=True, slots=True)
class SourceQuery:
    """Which rows of one source are measured, and how they are grouped."""

    source: Source
    created_from: datetime
    created_before: datetime
    group_by: tuple[Dimension, ...]
    agent_flow: str = ""
    agent_name: str = ""
    tool_name: str = ""


@dataclass(frozen=True, slots=True)
class Measured:
    """What the database says of one metric of one group."""

    metric: Metric
    group: tuple[str, ...]
    covered: int
    """Rows with a value."""
    unknown: int
    total: int
    """Of the values; of a share, how many rows it counts."""
    base: int
    """What a ratio divides by."""
    partial: int
    """Covered rows that know only a part."""
