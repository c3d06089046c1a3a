"""What the rules that answer ask of a store. All rows are those of the call's space."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from ramet_server.domain.call import Call
from telemetry.rules.chain_queries import LightStep, LightTool, StepPlace, ToolSum
from telemetry.rules.list_queries import DiagnosisQuery, ToolQuery
from telemetry.rules.metric_queries import Measured, Metric, SourceQuery
from telemetry.rules.pages import Found
from telemetry.rules.tail_queries import Change, ChangePlace, Kind
from telemetry.rules.values import Diagnosis, Step, ToolCall

T = TypeVar("T")


class Diagnoses(Protocol):
    """Diagnoses, each with what its sources say."""

    def get(self, session_id: str) -> Diagnosis | None:
        """Returns one."""
        ...

    def of_ids(self, ids: Sequence[int]) -> Sequence[Diagnosis]:
        """Returns those of these numbers, which were read here before, that still exist; in any order."""
        ...

    def examine(self, query: DiagnosisQuery) -> Found[Diagnosis]:
        """Looks at a bounded stretch of the query's index, newest first."""
        ...


class Steps(Protocol):
    """Steps of diagnoses."""

    def light(self, session_id: str, after: StepPlace | None, limit: int) -> Sequence[LightStep]:
        """Returns what tells how large the next steps of a diagnosis are, by step_index, then number."""
        ...

    def of_ids(self, ids: Sequence[int]) -> Sequence[Step]:
        """Returns those of these numbers, which were read here before, that still exist; in any order."""
        ...


class Tools(Protocol):
    """Tool calls of diagnoses."""

    def sums(self, session_id: str, step_keys: Sequence[str]) -> Mapping[str, ToolSum]:
        """Returns by step how many tool calls it made, and how large they are together."""
        ...

    def of_steps(self, session_id: str, step_keys: Sequence[str], most: int) -> Sequence[LightTool]:
        """Returns the first tool calls of each step by number, at most ``most`` of each."""
        ...

    def loose(self, session_id: str, most: int) -> Sequence[LightTool]:
        """Returns the first tool calls that name no step, or one that has not come, by number."""
        ...

    def of_ids(self, ids: Sequence[int]) -> Sequence[ToolCall]:
        """Returns those of these numbers, which were read here before, that still exist; in any order."""
        ...

    def examine(self, query: ToolQuery) -> Found[ToolCall]:
        """Looks at a bounded stretch of the query's index, newest first."""
        ...


class Metrics(Protocol):
    """Measures, computed by the database."""

    def measure(self, query: SourceQuery, metrics: Sequence[Metric], limit: int) -> Sequence[Measured]:
        """Returns each metric of each group, ``limit`` groups at most."""
        ...

    def percentiles(
        self, query: SourceQuery, metric: Metric, percentiles: Sequence[float]
    ) -> Mapping[tuple[str, ...], Sequence[float]]:
        """Returns the percentiles of a metric by group, by nearest rank; groups without a value are missing."""
        ...


class Changes(Protocol):
    """What changed, by the server's time of the change."""

    def since(self, kind: Kind, since: datetime, after: ChangePlace | None, limit: int) -> Sequence[Change]:
        """Returns the rows of a kind that changed at a moment or later, oldest first."""
        ...


class AnswersUnit(Protocol):
    """A series of reads over one space."""

    @property
    def diagnoses(self) -> Diagnoses:
        """The diagnoses."""
        ...

    @property
    def steps(self) -> Steps:
        """The steps."""
        ...

    @property
    def tools(self) -> Tools:
        """The tool calls."""
        ...

    @property
    def metrics(self) -> Metrics:
        """The measures."""
        ...

    @property
    def changes(self) -> Changes:
        """What changed."""
        ...


class AnswersStore(Protocol):
    """Opens series of reads in the space of a call."""

    def read(self, call: Call, fn: Callable[[AnswersUnit], T]) -> T:
        """Runs ``fn``; each query sees one state."""
        ...

    def snapshot(self, call: Call, fn: Callable[[AnswersUnit], T]) -> T:
        """Runs ``fn`` over one consistent state."""
        ...
