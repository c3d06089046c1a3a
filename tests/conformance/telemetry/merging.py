"""Rows merge in any order of arrival, and totals follow from the rows."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet.telemetry.v1.telemetry_pb2_grpc import TelemetryStub
from tests.conformance.telemetry.making import chain, get, steps, tell
from tests.telemetry import events as e

STORY = [
    e.started("e1", 0, query="why?", agent_flow="AI_OPS"),
    e.step_started("e2", "s", 1, agent_name="supervisor", model="large"),
    e.step_completed("e3", "s", 4, agent_name="supervisor", usage=pb.Usage(input_tokens=7, output_tokens=2)),
    e.step_completed("e4", "sub", 3, step_index=1, agent_name="executor", parent_step_key="s", status=e.FAILED),
    e.tool("e5", "t", 2, step_key="sub"),
    e.completed("e6", 9),
]


class TestMerging:
    @pytest.mark.parametrize("order", [(0, 1, 2, 3, 4, 5), (5, 4, 3, 2, 1, 0), (4, 2, 0, 5, 3, 1)])
    def test_any_order_of_arrival_ends_alike(self, telemetry: TelemetryStub, order: Sequence[int]) -> None:
        for place in order:
            tell(telemetry, STORY[place])
        found = get(telemetry)
        assert (found.query, found.agent_flow, found.status) == ("why?", "AI_OPS", pb.RUN_STATUS_SUCCESS)
        assert (found.total_duration_ms, found.step_count, found.tool_call_count) == (9000, 2, 1)
        assert (found.total_token_count, found.steps_with_tokens) == (9, 1)
        supervisor, executor = steps(telemetry)
        assert (supervisor.model, supervisor.duration_ms, supervisor.status) == ("large", 3000, pb.RUN_STATUS_SUCCESS)
        assert (executor.parent_step_key, executor.status) == ("s", pb.RUN_STATUS_FAILED)
        (tool,) = executor.tool_invocations
        assert (tool.step_id, tool.invocation_key) == (executor.id, "t")

    def test_a_status_only_goes_forward(self, telemetry: TelemetryStub) -> None:
        tell(telemetry, e.step_completed("e1", "a"))
        assert get(telemetry).status == pb.RUN_STATUS_PENDING
        tell(telemetry, e.started("e2"))
        assert get(telemetry).status == pb.RUN_STATUS_RUNNING
        tell(telemetry, e.completed("e3", status=e.CANCELLED), e.started("e4", 20))
        assert get(telemetry).status == pb.RUN_STATUS_CANCELLED

    def test_cached_tokens_are_part_of_the_input(self, telemetry: TelemetryStub) -> None:
        """langfuse#12306: cached tokens are part of input tokens; total = input + output."""
        tell(
            telemetry,
            e.step_completed("e1", "a", usage=pb.Usage(input_tokens=10, cached_tokens=8, output_tokens=3)),
        )
        assert (steps(telemetry)[0].usage.total_tokens, get(telemetry).total_token_count) == (13, 13)

    def test_what_nobody_told_is_unknown_and_not_zero(self, telemetry: TelemetryStub) -> None:
        """openllmetry#627: no token count reported -> unknown, not 0."""
        tell(telemetry, e.step_completed("e1", "a"))
        found, (step,) = get(telemetry), steps(telemetry)
        assert not any(found.HasField(name) for name in ("total_token_count", "total_cost_micros", "total_duration_ms"))
        assert not any(step.usage.HasField(name) for name in ("total_tokens", "input_tokens", "cost_micros"))
        assert not step.HasField("duration_ms")

    def test_a_duration_that_cannot_be_is_zero_and_flagged(self, telemetry: TelemetryStub) -> None:
        """openobserve#14367: end before start -> 0, flagged."""
        tell(telemetry, e.step_completed("e1", "a", 2, started_at=e.at(5)), e.tool("e2", "t", duration_ms=-1))
        found = chain(telemetry)
        for row in (found.steps[0], found.loose_tool_invocations[0]):
            assert (row.duration_ms, row.duration_flagged) == (0, True)

    def test_fifty_steps_of_one_millisecond_are_in_order(self, telemetry: TelemetryStub) -> None:
        """langfuse#9274: 50 steps in one millisecond -> ordered by step_index."""
        tell(telemetry, *(e.step_completed(f"e{n}", f"s{n}", 1, step_index=49 - n) for n in range(50)))
        assert [step.step_index for step in steps(telemetry)] == list(range(50))

    def test_sub_agents_at_once_have_their_exact_parent(self, telemetry: TelemetryStub) -> None:
        """adk-python#5722: a supervisor and three sub-agents in parallel -> exact parent ids."""
        subs = [
            e.step_completed(f"e{n}", f"sub{n}", 2, step_index=n, agent_name=f"agent{n}", parent_step_key="sup")
            for n in (1, 2, 3)
        ]
        tell(telemetry, *subs, e.step_completed("e9", "sup", 3, agent_name="supervisor"))
        assert [step.parent_step_key for step in steps(telemetry)] == ["", "sup", "sup", "sup"]

    def test_json_keeps_its_value(self, telemetry: TelemetryStub) -> None:
        text = '{"big": 9007199254740993, "zh": "\u6162", "list": [1, 1.5, null, true]}'
        tell(telemetry, e.step_completed("e1", "a", model_output_json=text))
        kept = steps(telemetry)[0].model_output_json
        assert "9007199254740993" in kept
        assert all(part in kept for part in ('"zh"', "1.5", "null", "true"))
