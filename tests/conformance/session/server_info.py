"""What the server tells of itself, and what it does not serve yet."""

from __future__ import annotations

from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub

MIB = 1024 * 1024


class TestServerInfo:
    def test_it_tells_version_revision_and_limits(self, storage: SessionStorageStub) -> None:
        info = storage.GetServerInfo(pb.GetServerInfoRequest())
        assert info.version
        assert info.schema_revision
        assert info.limits == pb.Limits(
            max_record_bytes=4 * MIB,
            max_append_bytes=16 * MIB,
            max_append_records=1000,
            max_slot_bytes=4 * MIB,
            max_metadata_bytes=MIB,
            max_page_size=1000,
            max_page_bytes=4 * MIB,
            request_id_hours=24,
            max_transaction_operations=1000,
            max_transaction_bytes=16 * MIB,
            max_transaction_seconds=60,
        )
