"""The half of Telemetry that takes events, a short method per RPC: message in, rule called, message out."""

from collections.abc import AsyncIterator
from contextlib import aclosing

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet_server import __version__
from ramet_server.domain.call import Call
from ramet_server.domain.limits import Limits
from ramet_server.serving.handlers import Unparsed
from ramet_server.serving.workers import Workers
from telemetry.convert import events
from telemetry.convert.requests import mutation
from telemetry.rules.event_checks import EventChecks
from telemetry.rules.feedback import FeedbackRules
from telemetry.rules.ingest import IngestRules
from telemetry.streaming import EventStream


class IngestServicer:
    """Takes what agents tell."""

    def __init__(
        self,
        *,
        ingest: IngestRules,
        feedback: FeedbackRules,
        checks: EventChecks,
        limits: Limits,
        schema_revision: str,
    ) -> None:
        self._ingest = ingest
        self._feedback = feedback
        self._checks = checks
        self._limits = limits
        self._schema_revision = schema_revision

    async def StreamEvents(
        self, requests: AsyncIterator[Unparsed], call: Call, workers: Workers
    ) -> AsyncIterator[pb.StreamEventsResponse]:
        """Takes events as a stream."""
        stream = EventStream(self._ingest, self._checks, self._limits, call, workers)
        async with aclosing(stream.replies(requests)) as replies:
            async for reply in replies:
                yield reply

    def AppendEvents(self, request: pb.AppendEventsRequest, call: Call) -> pb.AppendEventsResponse:
        """Takes a batch of events at once."""
        appended = self._ingest.append(call, events.candidates(request.events, self._checks))
        return pb.AppendEventsResponse(
            accepted=appended.accepted, refusals=map(events.refusal_message, appended.refusals)
        )

    def PutFeedback(self, request: pb.PutFeedbackRequest, call: Call) -> pb.Feedback:
        """Sets what one source says of a diagnosis."""
        change, said = mutation("PutFeedback", request), events.feedback(request.feedback)
        return events.feedback_message(self._feedback.put(call, change, request.session_id, said))

    def PutSelfEvaluation(self, request: pb.PutSelfEvaluationRequest, call: Call) -> pb.SelfEvaluation:
        """Sets what the model says of its own conclusion."""
        change, said = mutation("PutSelfEvaluation", request), events.self_evaluation(request.self_evaluation)
        return events.self_evaluation_message(
            self._feedback.put_self_evaluation(call, change, request.session_id, said)
        )

    def GetServerInfo(self, _: pb.GetServerInfoRequest, call: Call) -> pb.GetServerInfoResponse:  # noqa: ARG002 - every RPC has this shape
        """Tells version, schema revision and limits."""
        return pb.GetServerInfoResponse(
            version=__version__,
            schema_revision=self._schema_revision,
            limits=pb.Limits(
                max_batch_events=self._limits.max_batch_events,
                max_batch_bytes=self._limits.max_batch_bytes,
                max_text_bytes=self._limits.max_event_text_bytes,
                max_preview_characters=self._limits.max_preview_characters,
                abandoned_after_seconds=self._limits.abandoned_after_seconds,
            ),
        )
