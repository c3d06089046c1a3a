"""The SQL of measures: one statement per source, and one per metric for its percentiles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    String,
    and_,
    case,
    cast,
    func,
    literal,
    or_,
    select,
    true,
)

from ramet_server.database.tables.telemetry import agent_step, diagnosis_session, tool_invocation
from telemetry.rules.metric_queries import Dimension, Measured, Metric, Source, SourceQuery
from telemetry.rules.values import FeedbackValue, RunStatus

_D = diagnosis_session.c
_S = agent_step.c
_T = tool_invocation.c

_TABLES = {Source.DIAGNOSIS: diagnosis_session, Source.STEP: agent_step, Source.TOOL: tool_invocation}

_ONE = 1
# A percentile as a fraction, so that ranks are computed with whole numbers: 55 * 100 / 100 is not 55 in floats.
_DENOMINATOR = 100 * 10**6


@dataclass(frozen=True)
class _Measure:
    """What a metric is of a row."""

    value: ColumnElement[Any]
    """NULL where the row has none."""
    within: ColumnElement[bool] | None = None
    """Rows that the metric is about; None for all."""
    base: ColumnElement[Any] | None = None
    partial: ColumnElement[bool] | None = None


def _unflagged(value: ColumnElement[Any], flagged: ColumnElement[Any]) -> ColumnElement[Any]:
    return case((flagged == 0, value))


def _share(counts: ColumnElement[bool], *, told: ColumnElement[bool]) -> ColumnElement[Any]:
    return case((counts, _ONE), (told, 0))


def _in_evaluation(name: str) -> ColumnElement[Any]:
    return cast(func.json_extract(_D.self_evaluation, f"$.{name}"), BigInteger)


_PROPOSED, _ACCEPTED = _in_evaluation("tools_proposed"), _in_evaluation("tools_accepted")
_BOTH = and_(_PROPOSED.is_not(None), _ACCEPTED.is_not(None))
_ENDED = _D.status.in_((RunStatus.SUCCESS, RunStatus.FAILED, RunStatus.CANCELLED))
_LOOKUP = or_(
    _T.retrieval_layer.is_not(None),
    _T.l0_match_count.is_not(None),
    _T.l1_match_count.is_not(None),
    _T.retrieval_details.is_not(None),
)

_MEASURES: Mapping[Metric, _Measure] = {
    Metric.DIAGNOSIS_COUNT: _Measure(literal(_ONE)),
    Metric.DIAGNOSIS_DURATION_MS: _Measure(_unflagged(_D.total_duration_ms, _D.duration_flagged)),
    Metric.DIAGNOSIS_TOKENS: _Measure(
        _D.total_token_count,
        partial=and_(_D.total_token_count.is_not(None), _D.steps_with_tokens < _D.step_count),
    ),
    Metric.DIAGNOSIS_COST_MICROS: _Measure(_D.total_cost_micros),
    Metric.SUCCESS_RATE: _Measure(_share(_D.status == RunStatus.SUCCESS, told=_ENDED)),
    Metric.SATISFACTION: _Measure(_share(_D.feedback == FeedbackValue.USEFUL, told=_D.feedback.is_not(None))),
    Metric.TOOL_ACCEPTANCE: _Measure(case((_BOTH, _ACCEPTED)), base=case((_BOTH, _PROPOSED))),
    Metric.CONFIDENCE: _Measure(_D.confidence),
    Metric.STEP_COUNT: _Measure(literal(_ONE)),
    Metric.STEP_DURATION_MS: _Measure(_unflagged(_S.duration_ms, _S.duration_flagged)),
    Metric.STEP_TOKENS: _Measure(_S.token_count),
    Metric.TOOL_COUNT: _Measure(literal(_ONE)),
    Metric.TOOL_DURATION_MS: _Measure(_unflagged(_T.duration_ms, _T.duration_flagged)),
    Metric.TOOL_SUCCESS_RATE: _Measure(_share(_T.success == 1, told=true())),
    Metric.L0_HIT_RATE: _Measure(_share(_T.l0_match_count > 0, told=_T.l0_match_count.is_not(None)), within=_LOOKUP),
    Metric.TRUNCATION_RATE: _Measure(_share(_T.is_truncated == 1, told=true())),
}


class SqlMetrics:
    """The measures of one space; implements ``rules.answer_ports.Metrics``."""

    def __init__(self, connection: Connection, space: str) -> None:
        self._connection = connection
        self._space = space

    def measure(self, query: SourceQuery, metrics: Sequence[Metric], limit: int) -> Sequence[Measured]:
        """Returns each metric of each group, ``limit`` groups at most."""
        columns: list[ColumnElement[Any]] = []
        for place, metric in enumerate(metrics):
            measure = _MEASURES[metric]
            columns.append(measure.value.label(f"value_{place}"))
            columns.append(_flag(measure.within).label(f"within_{place}"))
            columns.append((literal(0) if measure.base is None else measure.base).label(f"base_{place}"))
            partial = literal(0) if measure.partial is None else _flag(measure.partial)
            columns.append(partial.label(f"partial_{place}"))
        rows = self._rows(query, columns).subquery("measured")
        groups = [rows.c[f"group_{place}"] for place in range(len(query.group_by))]
        totals = [
            aggregate
            for place in range(len(metrics))
            for aggregate in (
                func.count(rows.c[f"value_{place}"]),
                func.coalesce(func.sum(rows.c[f"within_{place}"]), 0),
                func.coalesce(func.sum(rows.c[f"value_{place}"]), 0),
                func.coalesce(func.sum(rows.c[f"base_{place}"]), 0),
                func.coalesce(func.sum(rows.c[f"partial_{place}"]), 0),
            )
        ]
        statement = select(*groups, *totals).select_from(rows).group_by(*groups).limit(limit)
        measured: list[Measured] = []
        for row in self._connection.execute(statement):
            group = _group(query, row[: len(groups)])
            for place, metric in enumerate(metrics):
                start = len(groups) + 5 * place
                covered, within, total, base, in_part = (int(value) for value in row[start : start + 5])
                measured.append(Measured(metric, group, covered, within - covered, total, base, in_part))
        return measured

    def percentiles(
        self, query: SourceQuery, metric: Metric, percentiles: Sequence[float]
    ) -> Mapping[tuple[str, ...], Sequence[float]]:
        """Returns the percentiles of a metric by group, by nearest rank; groups without a value are missing."""
        value = _MEASURES[metric].value
        measured = self._rows(query, [value.label("value")]).where(value.is_not(None)).subquery("measured")
        groups = [measured.c[f"group_{place}"] for place in range(len(query.group_by))]
        rank = func.row_number().over(partition_by=groups or None, order_by=measured.c.value)
        count = func.count().over(partition_by=groups or None)
        ranked = select(*groups, measured.c.value, rank.label("ranked"), count.label("counted")).subquery("ranks")
        wanted = [
            # The value whose rank is the least that is not below p percent of the count.
            func.max(
                case(
                    (
                        and_(
                            (ranked.c.ranked - 1) * _DENOMINATOR < ranked.c.counted * _numerator(each),
                            ranked.c.ranked * _DENOMINATOR >= ranked.c.counted * _numerator(each),
                        ),
                        ranked.c.value,
                    )
                )
            )
            for each in percentiles
        ]
        outer = [ranked.c[f"group_{place}"] for place in range(len(groups))]
        found = self._connection.execute(select(*outer, *wanted).group_by(*outer))
        return {
            _group(query, row[: len(outer)]): [float(value) for value in row[len(outer) :]]
            for row in found
            if row[-1] is not None
        }

    def _rows(self, query: SourceQuery, columns: Sequence[ColumnElement[Any]]) -> Select[Any]:
        """Selects the columns of the rows that are measured, with the groups that they belong to."""
        table = _TABLES[query.source]
        groups = [_dimension(query.source, each).label(f"group_{place}") for place, each in enumerate(query.group_by)]
        statement = select(*groups, *columns).where(
            table.c.space_id == self._space,
            table.c.created_at >= query.created_from,
            table.c.created_at < query.created_before,
        )
        if query.agent_flow:
            statement = statement.where(_flow(query.source) == query.agent_flow)
        if query.agent_name:
            statement = statement.where(_S.agent_name == query.agent_name)
        if query.tool_name:
            statement = statement.where(_T.tool_name == query.tool_name)
        return statement


def _dimension(source: Source, dimension: Dimension) -> ColumnElement[Any]:
    if dimension is Dimension.AGENT_FLOW:
        return func.coalesce(_flow(source), "")
    if dimension is Dimension.AGENT_NAME:
        return _S.agent_name
    if dimension is Dimension.TOOL_NAME:
        return _T.tool_name
    if dimension is Dimension.RETRIEVAL_LAYER:
        return func.coalesce(_T.retrieval_layer, "")
    if dimension is Dimension.MODEL:
        return func.coalesce(_S.model, "")
    # Both backends write a moment as 2026-11-30 22:15:00.
    return func.substr(_TABLES[source].c.created_at, 1, 13 if dimension is Dimension.HOUR else 10, type_=String())


def _flow(source: Source) -> ColumnElement[Any]:
    """Returns the flow of a row's diagnosis, read by key for each row, so that the time range drives the query."""
    if source is Source.DIAGNOSIS:
        return _D.agent_flow
    table = _TABLES[source]
    return (
        select(_D.agent_flow)
        .where(_D.space_id == table.c.space_id, _D.session_id == table.c.session_id)
        .correlate(table)
        .scalar_subquery()
    )


def _flag(condition: ColumnElement[bool] | None) -> ColumnElement[Any]:
    return literal(_ONE) if condition is None else case((condition, _ONE), else_=0)


def _group(query: SourceQuery, values: Sequence[Any]) -> tuple[str, ...]:
    return tuple(
        str(value).replace(" ", "T") if dimension is Dimension.HOUR else str(value)
        for dimension, value in zip(query.group_by, values, strict=True)
    )


def _numerator(percentile: float) -> int:
    return max(1, round(percentile * 10**6))
