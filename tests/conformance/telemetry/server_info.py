"""What the server tells of itself."""

from __future__ import annotations

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet.telemetry.v1.telemetry_pb2_grpc import TelemetryStub


class TestTelemetryServerInfo:
    def test_it_tells_version_revision_and_limits(self, telemetry: TelemetryStub) -> None:
        info = telemetry.GetServerInfo(pb.GetServerInfoRequest())
        assert info.version
        assert info.schema_revision
        assert info.limits == pb.Limits(
            max_batch_events=1000,
            max_batch_bytes=4 * 1024 * 1024,
            max_text_bytes=64 * 1024,
            max_preview_characters=500,
            abandoned_after_seconds=900,
        )
