"""The half of Telemetry that answers, a short method per RPC: message in, rule called, message out."""

from collections.abc import AsyncIterator
from contextlib import aclosing

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet_server.domain.call import Call
from ramet_server.domain.ids import check_optional_id
from ramet_server.serving.handlers import long
from ramet_server.serving.workers import Workers
from telemetry.convert import answers, queries
from telemetry.rules.chain import ChainRules
from telemetry.rules.listing import ListingRules
from telemetry.rules.metrics import MetricsRules
from telemetry.rules.tools import ToolRules
from telemetry.tail_hub import TailHub


class AnswersServicer:
    """Answers what happened, how well and at what cost."""

    def __init__(
        self, *, listing: ListingRules, chain: ChainRules, tools: ToolRules, metrics: MetricsRules, hub: TailHub
    ) -> None:
        self._listing = listing
        self._chain = chain
        self._tools = tools
        self._metrics = metrics
        self._hub = hub

    def GetDiagnosisSession(self, request: pb.GetDiagnosisSessionRequest, call: Call) -> pb.DiagnosisSession:
        """Reads one diagnosis with its totals."""
        return answers.diagnosis_message(self._listing.get(call, request.session_id))

    def ListDiagnosisSessions(
        self, request: pb.ListDiagnosisSessionsRequest, call: Call
    ) -> pb.ListDiagnosisSessionsResponse:
        """Lists diagnoses, newest first."""
        page = self._listing.list(call, queries.diagnosis_filter(request), queries.page_wish(request))
        return answers.diagnoses_message(page)

    def GetDecisionChain(self, request: pb.GetDecisionChainRequest, call: Call) -> pb.GetDecisionChainResponse:
        """Reads a diagnosis as it went."""
        return answers.chain_message(self._chain.get(call, request.session_id, queries.page_wish(request)))

    def ListToolInvocations(self, request: pb.ListToolInvocationsRequest, call: Call) -> pb.ListToolInvocationsResponse:
        """Lists tool calls, newest first."""
        page = self._tools.list(call, queries.tool_filter(request), queries.page_wish(request))
        return answers.tools_message(page)

    @long
    def QueryMetrics(self, request: pb.QueryMetricsRequest, call: Call) -> pb.QueryMetricsResponse:
        """Answers measures over a time range, grouped."""
        return answers.metrics_message(self._metrics.query(call, queries.metrics_wish(request)))

    async def TailEvents(
        self, request: pb.TailEventsRequest, call: Call, workers: Workers
    ) -> AsyncIterator[pb.TailEventsResponse]:
        """Streams what changes as it is committed."""
        session_id = check_optional_id(request.session_id, "session_id")
        async with aclosing(self._hub.watch(call.space, session_id, workers)) as changes:
            async for message in changes:
                yield message
