"""Measures, each with how many rows it covers."""

from __future__ import annotations

import pytest

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet.telemetry.v1.telemetry_pb2_grpc import TelemetryStub
from tests.conformance.refusing import bad_field
from tests.conformance.telemetry.making import measure, tell
from tests.telemetry import events as e


class TestMeasures:
    @pytest.fixture
    def told(self, telemetry: TelemetryStub) -> TelemetryStub:
        """Steps of two agents, of which some tell their tokens and one took less than no time."""
        tell(
            telemetry,
            e.started("e1", agent_flow="CHAT"),
            *(
                e.step_completed(
                    f"s{n}",
                    f"s{n}",
                    step_index=n,
                    agent_name="planner" if n % 2 else "executor",
                    duration_ms=100 * n if n else -5,
                    usage=pb.Usage(total_tokens=n) if n > 2 else None,
                )
                for n in range(5)
            ),
            e.evaluation("e2", confidence=60, tools_proposed=4, tools_accepted=3),
            e.feedback("e3", e.USEFUL),
        )
        return telemetry

    def test_an_average_tells_what_it_covers(self, told: TelemetryStub) -> None:
        """openobserve#14367, openllmetry#627: flagged and unknown ones are left out, and counted."""
        duration, tokens = measure(told, "STEP_DURATION_MS", "STEP_TOKENS", percentiles=[50])
        assert (duration.value, duration.covered, duration.unknown) == (250, 4, 1)
        assert list(duration.percentiles) == [200]
        assert (tokens.value, tokens.covered, tokens.unknown) == (3.5, 2, 3)

    def test_the_measures_of_the_design(self, told: TelemetryStub) -> None:
        names = ("DIAGNOSIS_COUNT", "TOOL_ACCEPTANCE", "SATISFACTION", "CONFIDENCE", "STEP_COUNT", "DIAGNOSIS_TOKENS")
        found = {row.metric: row for row in measure(told, *names)}
        assert [found[pb.Metric.Value(f"METRIC_{name}")].value for name in names] == [1, 0.75, 1, 60, 5, 7]
        assert found[pb.METRIC_DIAGNOSIS_TOKENS].partial == 1

    def test_groups_are_told_apart(self, told: TelemetryStub) -> None:
        by_agent = [pb.DIMENSION_AGENT_NAME, pb.DIMENSION_AGENT_FLOW]
        rows = measure(told, "STEP_COUNT", group_by=by_agent)
        assert [(list(row.group), row.value) for row in rows] == [(["executor", "CHAT"], 3), (["planner", "CHAT"], 2)]
        (hourly,) = measure(told, "STEP_COUNT", group_by=[pb.DIMENSION_HOUR])
        (daily,) = measure(told, "STEP_COUNT", group_by=[pb.DIMENSION_DAY])
        assert hourly.group[0].startswith(f"{daily.group[0]}T")

    def test_a_dimension_that_a_measure_does_not_know_is_refused(self, told: TelemetryStub) -> None:
        with bad_field("group_by[0]"):
            measure(told, "DIAGNOSIS_COUNT", group_by=[pb.DIMENSION_MODEL])
