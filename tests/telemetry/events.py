"""Events as agents tell them, in few words: times are seconds after a moment of the past."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from ramet.telemetry.v1 import telemetry_pb2 as pb

START = 1_750_000_000

SUCCESS, FAILED, CANCELLED = pb.RUN_STATUS_SUCCESS, pb.RUN_STATUS_FAILED, pb.RUN_STATUS_CANCELLED
USEFUL, NOT_USEFUL = pb.FEEDBACK_VALUE_USEFUL, pb.FEEDBACK_VALUE_NOT_USEFUL


def at(seconds: float) -> Timestamp:
    """A moment."""
    time = Timestamp()
    time.FromMicroseconds(START * 1_000_000 + round(seconds * 1_000_000))
    return time


def _event(event_id: str, seconds: float, session_id: str, **body: Any) -> pb.Event:
    return pb.Event(event_id=event_id, session_id=session_id, occurred_at=at(seconds), **body)


def started(event_id: str, seconds: float = 0, session_id: str = "d", **fields: Any) -> pb.Event:
    """A diagnosis starts."""
    return _event(event_id, seconds, session_id, diagnosis_started=pb.DiagnosisStarted(**fields))


def completed(event_id: str, seconds: float = 9, session_id: str = "d", **fields: Any) -> pb.Event:
    """A diagnosis ends, well unless the fields say otherwise."""
    body = pb.DiagnosisCompleted(**{"status": SUCCESS, **fields})
    return _event(event_id, seconds, session_id, diagnosis_completed=body)


def step_started(event_id: str, key: str, seconds: float = 1, session_id: str = "d", **fields: Any) -> pb.Event:
    """A step starts."""
    body = pb.StepStarted(**{"step_key": key, "agent_name": "planner", **fields})
    return _event(event_id, seconds, session_id, step_started=body)


def step_completed(event_id: str, key: str, seconds: float = 2, session_id: str = "d", **fields: Any) -> pb.Event:
    """A step ends, well unless the fields say otherwise."""
    body = pb.StepCompleted(**{"step_key": key, "agent_name": "planner", "status": SUCCESS, **fields})
    return _event(event_id, seconds, session_id, step_completed=body)


def tool(event_id: str, key: str, seconds: float = 2, session_id: str = "d", **fields: Any) -> pb.Event:
    """A tool call ends, well unless the fields say otherwise."""
    body = pb.ToolCompleted(**{"invocation_key": key, "tool_name": "lookup_knowledge", "success": True, **fields})
    return _event(event_id, seconds, session_id, tool_completed=body)


def evaluation(event_id: str, seconds: float = 8, session_id: str = "d", **fields: Any) -> pb.Event:
    """The model judges its conclusion."""
    return _event(event_id, seconds, session_id, self_evaluation=pb.SelfEvaluation(**fields))


def feedback(
    event_id: str, value: pb.FeedbackValue.ValueType, seconds: float = 10, session_id: str = "d", **fields: Any
) -> pb.Event:
    """A source says what it thinks."""
    body = pb.Feedback(**{"source": "user", "value": value, **fields})
    return _event(event_id, seconds, session_id, feedback=body)


def steps(count: int, session_id: str = "d", prefix: str = "s") -> list[pb.Event]:
    """That many steps, each told by its end alone."""
    return [
        step_completed(
            f"{session_id}-{prefix}{number}",
            f"{prefix}{number}",
            number,
            session_id,
            step_index=number,
            usage=pb.Usage(input_tokens=10, output_tokens=1),
        )
        for number in range(count)
    ]


def split(events: Sequence[pb.Event], sizes: Sequence[int]) -> list[list[pb.Event]]:
    """The events cut into batches of these sizes, the rest in a last one."""
    batches, begin = [], 0
    for size in sizes:
        batches.append(list(events[begin : begin + size]))
        begin += size
    return [batch for batch in [*batches, list(events[begin:])] if batch]
