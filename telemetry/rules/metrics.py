"""Measures over a time range, each with how many rows it covers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from ramet_server.domain.call import Call
from ramet_server.domain.errors import InvalidField, too_large
from ramet_server.domain.text import check_label
from telemetry.rules.answer_ports import AnswersStore, AnswersUnit
from telemetry.rules.listing import MAX_NAME_CHARACTERS
from telemetry.rules.metric_queries import (
    DIMENSIONS,
    KINDS,
    Dimension,
    Kind,
    Measured,
    Metric,
    Source,
    SourceQuery,
)
from telemetry.rules.pages import check_range
from telemetry.rules.tools import MAX_TOOL_NAME_CHARACTERS

MAX_METRICS = 16
MAX_DIMENSIONS = 3
MAX_PERCENTILES = 5
MAX_DAYS = 400
MAX_ROWS = 10_000
PERCENTILE_DECIMALS = 6

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MetricsWish:
    """What QueryMetrics asks for."""

    metrics: tuple[Metric, ...]
    created_from: datetime | None
    created_before: datetime | None
    group_by: tuple[Dimension, ...] = ()
    agent_flow: str = ""
    agent_name: str = ""
    tool_name: str = ""
    percentiles: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One measure of one group."""

    metric: Metric
    group: tuple[str, ...]
    value: float | None
    """A count, an average or a share; None where nothing had a value."""
    sum: float | None
    covered: int
    unknown: int
    partial: int
    percentiles: Sequence[float]


class MetricsRules:
    """Answers measures."""

    def __init__(self, store: AnswersStore) -> None:
        self._store = store

    def query(self, call: Call, wish: MetricsWish) -> Sequence[MetricRow]:
        """Returns a row per metric and group; see the contract."""
        sources = _check(wish)

        def read(unit: AnswersUnit) -> Sequence[MetricRow]:
            by_metric: dict[Metric, list[MetricRow]] = {metric: [] for metric in wish.metrics}
            for source, query in sources.items():
                metrics = [metric for metric in wish.metrics if KINDS[metric][0] is source]
                measured = unit.metrics.measure(query, metrics, MAX_ROWS + 1)
                percentiles = _percentiles(unit, query, metrics, wish.percentiles)
                for each in measured:
                    if each.covered or each.unknown or not wish.group_by:
                        by_metric[each.metric].append(_row(each, percentiles[each.metric].get(each.group, ())))
            rows = [row for found in by_metric.values() for row in sorted(found, key=lambda row: row.group)]
            if len(rows) > MAX_ROWS:
                raise too_large("The answer", MAX_ROWS, "rows")
            return rows

        return self._store.snapshot(call, read)


def _percentiles(
    unit: AnswersUnit, query: SourceQuery, metrics: Sequence[Metric], wanted: Sequence[float]
) -> Mapping[Metric, Mapping[tuple[str, ...], Sequence[float]]]:
    return {
        metric: unit.metrics.percentiles(query, metric, wanted) if wanted and KINDS[metric][1] is Kind.AMOUNT else {}
        for metric in metrics
    }


def _row(measured: Measured, percentiles: Sequence[float]) -> MetricRow:
    kind = KINDS[measured.metric][1]
    value: float | None = None
    if kind is Kind.COUNT:
        value = measured.covered
    elif kind is Kind.RATIO:
        value = measured.total / measured.base if measured.base else None
    elif measured.covered:
        value = measured.total / measured.covered
    told = kind in (Kind.AMOUNT, Kind.SHARE, Kind.RATIO) and measured.covered
    return MetricRow(
        measured.metric,
        measured.group,
        value,
        measured.total if told else None,
        measured.covered,
        measured.unknown,
        measured.partial,
        percentiles,
    )


def _check(wish: MetricsWish) -> Mapping[Source, SourceQuery]:
    """Returns what is asked of each source."""
    if not wish.metrics:
        raise InvalidField("metrics is required.", field="metrics")
    _check_list(wish.metrics, MAX_METRICS, "metrics")
    _check_list(wish.group_by, MAX_DIMENSIONS, "group_by")
    if len(wish.percentiles) > MAX_PERCENTILES:
        raise too_large("percentiles", MAX_PERCENTILES, "entries", "percentiles")
    for place, percentile in enumerate(wish.percentiles):
        # Not a number is neither.
        if not (0 < percentile < 100) or math.isnan(percentile):
            field = f"percentiles[{place}]"
            raise InvalidField(f"{field} must lie between 0 and 100.", field=field)
    created_from, created_before = _check_times(wish)
    check_label(wish.agent_flow, "agent_flow", MAX_NAME_CHARACTERS)
    check_label(wish.agent_name, "agent_name", MAX_NAME_CHARACTERS)
    check_label(wish.tool_name, "tool_name", MAX_TOOL_NAME_CHARACTERS)
    sources = dict.fromkeys(KINDS[metric][0] for metric in wish.metrics)
    for source in sources:
        for place, dimension in enumerate(wish.group_by):
            if dimension not in DIMENSIONS[source]:
                raise _unfit(f"group_by[{place}]")
        if wish.agent_name and source is not Source.STEP:
            raise _unfit("agent_name")
        if wish.tool_name and source is not Source.TOOL:
            raise _unfit("tool_name")
    return {
        source: SourceQuery(
            source, created_from, created_before, wish.group_by, wish.agent_flow, wish.agent_name, wish.tool_name
        )
        for source in sources
    }


def _check_times(wish: MetricsWish) -> tuple[datetime, datetime]:
    if wish.created_from is None:
        raise InvalidField("created_from is required.", field="created_from")
    if wish.created_before is None:
        raise InvalidField("created_before is required.", field="created_before")
    check_range(wish.created_from, wish.created_before, "created_before")
    if wish.created_before - wish.created_from > timedelta(days=MAX_DAYS):
        raise too_large("The time range", MAX_DAYS, "days", "created_before")
    return wish.created_from, wish.created_before


def _check_list(values: Sequence[T], most: int, field: str) -> None:
    if len(values) > most:
        raise too_large(field, most, "entries", field)
    for place, value in enumerate(values):
        if value in values[:place]:
            raise InvalidField(f"{field}[{place}] is named twice.", field=f"{field}[{place}]")


def _unfit(field: str) -> InvalidField:
    return InvalidField(f"{field} does not fit all of the metrics.", field=field)
