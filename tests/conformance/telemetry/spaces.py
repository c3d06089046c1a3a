"""Spaces: every diagnosis belongs to one, and nothing crosses from one to another."""

from __future__ import annotations

import pytest

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet.telemetry.v1.telemetry_pb2_grpc import TelemetryStub
from tests.conformance.backends import Backend
from tests.conformance.calling import within
from tests.conformance.refusing import unknown_diagnosis
from tests.conformance.telemetry.making import get, listed, measure, tell
from tests.telemetry import events as e


class TestTelemetrySpaces:
    @pytest.fixture
    def other(self, backend: Backend, space: str) -> TelemetryStub:
        """The same service, within another space of the test's own."""
        return TelemetryStub(within(backend.channel, f"{space}-other"))

    def test_the_same_ids_in_two_spaces_are_two_things(self, telemetry: TelemetryStub, other: TelemetryStub) -> None:
        for here, name in ((telemetry, "one"), (other, "two")):
            tell(here, e.started("e1", query=name), e.step_completed("e2", "a"), e.tool("e3", "t", step_key="a"))
        assert (get(telemetry).query, get(other).query) == ("one", "two")
        assert [row.value for row in measure(telemetry, "STEP_COUNT", "TOOL_COUNT")] == [1, 1]

    def test_nothing_of_another_space_is_shown(self, telemetry: TelemetryStub, other: TelemetryStub) -> None:
        tell(telemetry, e.started("e1"), e.tool("e2", "t"))
        with unknown_diagnosis():
            get(other)
        assert listed(other) == []
        assert not other.ListToolInvocations(pb.ListToolInvocationsRequest()).invocations
