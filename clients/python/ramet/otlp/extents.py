"""From when to when a part of a diagnosis lasted, in nanoseconds since 1970, as OTLP counts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ramet.client import AgentStep, Diagnosis, ToolInvocation
from ramet.otlp.runs import Run, RunKey

__all__ = ["Extent", "extent_of_diagnosis", "extent_of_part", "extents_of_runs", "nanoseconds"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Extent:
    """A start and an end, which is never before it."""

    start: int
    end: int


def nanoseconds(time: datetime) -> int:
    """Counts from the epoch, exactly."""
    return (time - _EPOCH) // _MICROSECOND * 1_000


def extent_of_part(part: AgentStep | ToolInvocation) -> Extent:
    """Tells when a step or tool call was, from what is known of start, end and duration.

    OTLP knows no open span: one without an end ends where it began. Without any time of the client's it is at the
    server's time of its first event.
    """
    lasted = timedelta(milliseconds=part.duration_ms or 0)
    start = part.started_at or (part.ended_at - lasted if part.ended_at else part.created_at or _EPOCH)
    end = part.ended_at or start + lasted
    return Extent(nanoseconds(start), nanoseconds(max(start, end)))


def extents_of_runs(runs: Sequence[Run]) -> dict[RunKey, Extent]:
    """Tells when each run was: from the first to the last thing within it. By the keys of the runs.

    The runs come each after the one it lies in.
    """
    found = {run.key: [*map(extent_of_part, run.steps), *map(extent_of_part, run.tools)] for run in runs}
    whole: dict[RunKey, Extent] = {}
    for run in reversed(runs):
        whole[run.key] = _around(found[run.key])
        if run.parent is not None:
            found[run.parent.key].append(whole[run.key])
    return whole


def extent_of_diagnosis(diagnosis: Diagnosis, within: Iterable[Extent]) -> Extent:
    """Tells when a diagnosis was, by its own times; where one is unknown, by what is within it."""
    parts = list(within)
    created = nanoseconds(diagnosis.created_at or _EPOCH)
    known = _around(parts) if parts else Extent(created, created)
    start = nanoseconds(diagnosis.started_at) if diagnosis.started_at else known.start
    end = nanoseconds(diagnosis.ended_at) if diagnosis.ended_at else known.end
    return Extent(start, max(start, end))


def _around(parts: Iterable[Extent]) -> Extent:
    parts = list(parts)
    return Extent(min(part.start for part in parts), max(part.end for part in parts))
