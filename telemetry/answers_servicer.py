"""The half of Telemetry that answers, a short method per RPC: message in, rule called, message out."""

from collections.abc import AsyncIterator

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet_server.domain.call import Call
from ramet_server.domain.errors import NotServed


class AnswersServicer:
    """Answers what happened, how well and at what cost."""

    def GetDiagnosisSession(self, request: pb.GetDiagnosisSessionRequest, call: Call) -> pb.DiagnosisSession:
        """Reads one diagnosis with its totals."""
        raise _not_yet()

    def ListDiagnosisSessions(
        self, request: pb.ListDiagnosisSessionsRequest, call: Call
    ) -> pb.ListDiagnosisSessionsResponse:
        """Lists diagnoses, newest first."""
        raise _not_yet()

    def GetDecisionChain(self, request: pb.GetDecisionChainRequest, call: Call) -> pb.GetDecisionChainResponse:
        """Reads a diagnosis as it went."""
        raise _not_yet()

    def ListToolInvocations(self, request: pb.ListToolInvocationsRequest, call: Call) -> pb.ListToolInvocationsResponse:
        """Lists tool calls, newest first."""
        raise _not_yet()

    def QueryMetrics(self, request: pb.QueryMetricsRequest, call: Call) -> pb.QueryMetricsResponse:
        """Answers measures over a time range, grouped."""
        raise _not_yet()

    async def TailEvents(self, request: pb.TailEventsRequest, call: Call) -> AsyncIterator[pb.TailEventsResponse]:
        """Streams what changes as it is committed."""
        raise _not_yet()
        yield pb.TailEventsResponse()


def _not_yet() -> NotServed:
    return NotServed("This server does not serve the method yet.")
