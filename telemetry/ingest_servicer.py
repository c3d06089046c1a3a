"""The half of Telemetry that takes events, a short method per RPC: message in, rule called, message out."""

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet_server import __version__
from ramet_server.domain.call import Call
from ramet_server.domain.limits import Limits


class IngestServicer:
    """Takes what agents tell."""

    def __init__(self, *, limits: Limits, schema_revision: str) -> None:
        self._limits = limits
        self._schema_revision = schema_revision

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
