"""What tells how much of a decision chain fits onto a page."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepPlace:
    """Where a chain stands: after this step."""

    step_index: int
    id: int


@dataclass(frozen=True, slots=True)
class LightStep:
    """A step without its texts."""

    id: int
    step_key: str
    step_index: int
    size: int
    """Of its texts, in characters or bytes."""


@dataclass(frozen=True, slots=True)
class LightTool:
    """A tool call without its texts."""

    id: int
    step_key: str | None
    size: int
    """Of its texts, in characters or bytes."""


@dataclass(frozen=True, slots=True)
class ToolSum:
    """The tool calls of a step together."""

    count: int
    size: int
    """Of their texts, in characters or bytes."""
