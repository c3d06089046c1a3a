"""Answers: chains, lists and pages."""

from __future__ import annotations

import pytest

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet.telemetry.v1.telemetry_pb2_grpc import TelemetryStub
from tests.conformance.refusing import bad_field, bad_page_token, unknown_diagnosis
from tests.conformance.telemetry.making import chain, get, listed, tell
from tests.telemetry import events as e


class TestAnswers:
    @pytest.fixture
    def told(self, telemetry: TelemetryStub) -> TelemetryStub:
        """Three diagnoses, one after the other."""
        for name, flow, confidence, value, status in (
            ("sure-and-right", "CHAT", 95, e.USEFUL, e.SUCCESS),
            ("sure-and-wrong", "AI_OPS", 90, e.NOT_USEFUL, e.FAILED),
            ("unsure-and-wrong", "CHAT", 80, e.NOT_USEFUL, e.SUCCESS),
        ):
            tell(
                telemetry,
                e.started(f"{name}-1", session_id=name, query=f"Why {name}?", agent_flow=flow, conversation_id="main"),
                e.evaluation(f"{name}-2", session_id=name, confidence=confidence),
                e.feedback(f"{name}-3", value, session_id=name),
                e.tool(f"{name}-4", "t", session_id=name, success=status == e.SUCCESS),
                e.completed(f"{name}-5", session_id=name, status=status),
            )
        return telemetry

    def test_an_unknown_diagnosis_is_not_found(self, telemetry: TelemetryStub) -> None:
        for ask in (get, chain):
            with unknown_diagnosis():
                ask(telemetry, "nobody")

    def test_high_confidence_with_negative_feedback_is_one_call(self, told: TelemetryStub) -> None:
        assert listed(told, min_confidence=81, feedback=e.NOT_USEFUL) == ["sure-and-wrong"]

    def test_lists_are_newest_first_and_filtered(self, told: TelemetryStub) -> None:
        whole = ["unsure-and-wrong", "sure-and-wrong", "sure-and-right"]
        assert listed(told) == listed(told, conversation_id="main") == whole
        assert listed(told, agent_flow="CHAT") == [whole[0], whole[2]]
        assert listed(told, status=pb.RUN_STATUS_FAILED) == ["sure-and-wrong"]
        assert listed(told, max_confidence=80) == ["unsure-and-wrong"]
        assert listed(told, conversation_id="other") == []
        middle = get(told, "sure-and-wrong").created_at
        assert listed(told, created_before=middle) == whole[2:]
        assert listed(told, created_from=middle) == whole[:2]
        assert listed(told, created_from=middle, query_contains="why SURE") == ["sure-and-wrong"]

    def test_a_text_is_sought_within_a_time_range_alone(self, told: TelemetryStub) -> None:
        with bad_field("filter.created_from"):
            listed(told, query_contains="why")

    def test_pages_are_the_whole_list_cut(self, told: TelemetryStub) -> None:
        request, seen = pb.ListDiagnosisSessionsRequest(page_size=1), []
        while True:
            page = told.ListDiagnosisSessions(request)
            seen += [each.session_id for each in page.sessions]
            if not page.next_page_token:
                break
            request.page_token = page.next_page_token
        assert seen == listed(told)
        with bad_page_token():
            told.ListDiagnosisSessions(pb.ListDiagnosisSessionsRequest(page_size=1, page_token="AAAA"))

    def test_tool_calls_are_listed_by_what_they_did(self, told: TelemetryStub) -> None:
        def of(**conditions: object) -> list[str]:
            request = pb.ListToolInvocationsRequest(filter=pb.ToolFilter(**conditions))  # type: ignore[arg-type]  # any field
            return [each.session_id for each in told.ListToolInvocations(request).invocations]

        assert of(success=False) == ["sure-and-wrong"]
        assert of(session_id="sure-and-right", tool_name="lookup_knowledge") == ["sure-and-right"]
        assert of(layer=pb.RETRIEVAL_LAYER_L1) == []

    def test_a_chain_is_paged_by_steps_each_with_its_tools(self, telemetry: TelemetryStub) -> None:
        tell(telemetry, *e.steps(7), *(e.tool(f"t{n}", f"t{n}", step_key=f"s{n}") for n in range(7)), e.tool("l", "l"))
        first = chain(telemetry, page_size=4)
        second = chain(telemetry, page_size=4, page_token=first.next_page_token)
        assert [len(first.steps), len(second.steps), second.next_page_token] == [4, 3, ""]
        for number, step in enumerate([*first.steps, *second.steps]):
            assert (step.step_index, [tool.invocation_key for tool in step.tool_invocations]) == (
                number,
                [f"t{number}"],
            )
        assert [tool.invocation_key for tool in first.loose_tool_invocations] == ["l"]
        assert not second.loose_tool_invocations
