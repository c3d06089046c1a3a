"""What the server tells of itself."""

from __future__ import annotations

from ramet.session.v1 import session_pb2
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from ramet.tree.v1 import tree_pb2 as pb
from ramet.tree.v1.tree_pb2_grpc import SessionTreeStub


class TestTreeServerInfo:
    def test_it_tells_version_revision_and_limits(self, tree: SessionTreeStub, storage: SessionStorageStub) -> None:
        info = tree.GetServerInfo(pb.GetServerInfoRequest())
        of_storage = storage.GetServerInfo(session_pb2.GetServerInfoRequest())
        assert (info.version, info.schema_revision) == (of_storage.version, of_storage.schema_revision)
        assert info.version
        assert info.limits == pb.Limits(
            max_page_size=1000,
            max_tree_page_size=10_000,
            max_system_prompt_bytes=4 * 1024 * 1024,
            request_id_hours=24,
            await_content_seconds=600,
        )
