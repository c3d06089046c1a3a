"""Telemetry, its two halves together: events in, answers out."""

from telemetry.answers_servicer import AnswersServicer
from telemetry.ingest_servicer import IngestServicer


class TelemetryServicer:
    """Answers every RPC of the contract; each half is a class of its own."""

    def __init__(self, ingest: IngestServicer, answers: AnswersServicer) -> None:
        self.StreamEvents = ingest.StreamEvents
        self.AppendEvents = ingest.AppendEvents
        self.PutFeedback = ingest.PutFeedback
        self.PutSelfEvaluation = ingest.PutSelfEvaluation
        self.GetServerInfo = ingest.GetServerInfo
        self.GetDiagnosisSession = answers.GetDiagnosisSession
        self.ListDiagnosisSessions = answers.ListDiagnosisSessions
        self.GetDecisionChain = answers.GetDecisionChain
        self.ListToolInvocations = answers.ListToolInvocations
        self.QueryMetrics = answers.QueryMetrics
        self.TailEvents = answers.TailEvents
