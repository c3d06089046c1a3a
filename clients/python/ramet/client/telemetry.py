"""The contract Telemetry from Python, its answers: one method per RPC, and iterators that follow the pages.

What agents do is told by ``ramet.recorder``, which never slows them; this client reads it back.
"""

from collections.abc import AsyncGenerator, Iterable
from datetime import datetime

import grpc

from ramet.client import telemetry_convert as convert
from ramet.client.arguments import build, each
from ramet.client.calls import Caller, new_request_id
from ramet.client.convert import time_out
from ramet.client.telemetry_values import (
    AgentStep,
    DecisionChain,
    Diagnosis,
    DiagnosisFilter,
    DiagnosisPage,
    Dimension,
    Feedback,
    FeedbackValue,
    Metric,
    MetricRow,
    SelfEvaluation,
    TelemetryServerInfo,
    ToolFilter,
    ToolInvocation,
    ToolInvocationPage,
)
from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet.telemetry.v1.telemetry_pb2_grpc import TelemetryStub

__all__ = ["TelemetryClient"]


class TelemetryClient:
    """What happened, how well, and at what cost. Every method raises a :class:`RametError`."""

    def __init__(self, channel: grpc.aio.Channel, caller: Caller) -> None:
        self._stub = TelemetryStub(channel)
        self._caller = caller

    async def get_diagnosis(self, session_id: str) -> Diagnosis:
        """Reads one diagnosis with its totals."""
        request = build(pb.GetDiagnosisSessionRequest, session_id=session_id)
        return convert.diagnosis_in(await self._caller.unary(self._stub.GetDiagnosisSession, request))

    async def list_diagnoses(
        self, where: DiagnosisFilter | None = None, *, page_size: int = 0, page_token: str | None = None
    ) -> DiagnosisPage:
        """Lists one page of diagnoses, newest first: 100, or up to 1,000. A page may be short before the end."""
        request = build(
            pb.ListDiagnosisSessionsRequest,
            filter=convert.filter_out(where) if where else None,
            page_size=page_size,
            page_token=page_token or "",
        )
        reply = await self._caller.unary(self._stub.ListDiagnosisSessions, request)
        return DiagnosisPage(tuple(map(convert.diagnosis_in, reply.sessions)), reply.next_page_token or None)

    async def iter_diagnoses(self, where: DiagnosisFilter | None = None) -> AsyncGenerator[Diagnosis, None]:
        """Yields every diagnosis that the filter admits, newest first, page by page."""
        token: str | None = ""
        while token is not None:
            page = await self.list_diagnoses(where, page_size=1000, page_token=token)
            for diagnosis in page.diagnoses:
                yield diagnosis
            token = page.next_page_token

    async def get_decision_chain(
        self, session_id: str, *, page_size: int = 0, page_token: str | None = None
    ) -> DecisionChain:
        """Reads one page of a diagnosis as it went: its steps in order, each with its tool calls."""
        request = build(
            pb.GetDecisionChainRequest, session_id=session_id, page_size=page_size, page_token=page_token or ""
        )
        return convert.chain_in(await self._caller.unary(self._stub.GetDecisionChain, request))

    async def iter_steps(self, session_id: str) -> AsyncGenerator[AgentStep, None]:
        """Yields every step of a diagnosis in order, each with its tool calls, page by page."""
        token: str | None = ""
        while token is not None:
            page = await self.get_decision_chain(session_id, page_size=1000, page_token=token)
            for step in page.steps:
                yield step
            token = page.next_page_token

    async def list_tool_invocations(
        self, where: ToolFilter | None = None, *, page_size: int = 0, page_token: str | None = None
    ) -> ToolInvocationPage:
        """Lists one page of tool calls, newest first: 100, or up to 1,000. A page may be short before the end."""
        request = build(
            pb.ListToolInvocationsRequest,
            filter=convert.tool_filter_out(where) if where else None,
            page_size=page_size,
            page_token=page_token or "",
        )
        reply = await self._caller.unary(self._stub.ListToolInvocations, request)
        return ToolInvocationPage(tuple(map(convert.tool_in, reply.invocations)), reply.next_page_token or None)

    async def iter_tool_invocations(self, where: ToolFilter | None = None) -> AsyncGenerator[ToolInvocation, None]:
        """Yields every tool call that the filter admits, newest first, page by page."""
        token: str | None = ""
        while token is not None:
            page = await self.list_tool_invocations(where, page_size=1000, page_token=token)
            for invocation in page.invocations:
                yield invocation
            token = page.next_page_token

    async def put_feedback(
        self, session_id: str, source: str, value: FeedbackValue, comment: str = "", *, request_id: str | None = None
    ) -> Feedback:
        """Sets what one source says of a diagnosis; a later word of the same source replaces the earlier one."""
        request = build(
            pb.PutFeedbackRequest,
            session_id=session_id,
            feedback=convert.feedback_out(Feedback(source, value, comment)),
            request_id=request_id or new_request_id(),
        )
        return convert.feedback_in(await self._caller.unary(self._stub.PutFeedback, request))

    async def put_self_evaluation(
        self, session_id: str, evaluation: SelfEvaluation, *, request_id: str | None = None
    ) -> SelfEvaluation:
        """Sets what the model says of its own conclusion, replacing an earlier word."""
        request = build(
            pb.PutSelfEvaluationRequest,
            session_id=session_id,
            self_evaluation=convert.self_evaluation_out(evaluation),
            request_id=request_id or new_request_id(),
        )
        return convert.self_evaluation_in(await self._caller.unary(self._stub.PutSelfEvaluation, request))

    async def query_metrics(
        self,
        metrics: Iterable[Metric],
        created_from: datetime,
        created_before: datetime,
        *,
        group_by: Iterable[Dimension] = (),
        agent_flow: str = "",
        agent_name: str = "",
        tool_name: str = "",
        percentiles: Iterable[float] = (),
    ) -> tuple[MetricRow, ...]:
        """Answers measures over a time range of at most 400 days, one row per measure and group.

        Each row tells how many rows it covers and how many had no value.
        """
        request = build(
            pb.QueryMetricsRequest,
            metrics=each(convert.metric_out, metrics, "metrics"),
            created_from=time_out(created_from, "created_from"),
            created_before=time_out(created_before, "created_before"),
            group_by=each(convert.dimension_out, group_by, "group_by"),
            agent_flow=agent_flow,
            agent_name=agent_name,
            tool_name=tool_name,
            percentiles=percentiles,
        )
        reply = await self._caller.unary(self._stub.QueryMetrics, request)
        return tuple(map(convert.row_in, reply.rows))

    async def tail(self, session_id: str | None = None) -> AsyncGenerator[Diagnosis | AgentStep | ToolInvocation, None]:
        """Yields diagnoses, steps and tool calls as they change, of one diagnosis or of the whole space.

        It goes on until the client's deadline, so give the client one to fit (``with_options(timeout=...)``). It ends
        with Unavailable where the server drains, and with ResourceExhausted where changes are taken too slowly.
        """
        request = build(pb.TailEventsRequest, session_id=session_id or "")
        async for message in self._caller.stream(self._stub.TailEvents, request):
            change = convert.change_in(message)
            if change is not None:
                yield change

    async def get_server_info(self) -> TelemetryServerInfo:
        """Tells the server's version, schema revision and limits."""
        return convert.server_info_in(await self._caller.unary(self._stub.GetServerInfo, pb.GetServerInfoRequest()))
