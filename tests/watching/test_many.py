"""A thousand watchers of one server: they cost no thread, starve no call, and a drain sends each elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc

from ramet.session.v1 import session_pb2
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from ramet.tree.v1 import tree_pb2
from ramet.tree.v1.tree_pb2_grpc import SessionTreeStub
from tests.conformance.session import making as storing
from tests.conformance.tree import making as growing
from tests.conformance.tree.watches import told
from tests.conformance.watching import Watch
from tests.harness.server import ServerProcess

WATCHERS = 1000
SESSIONS = 100


def test_a_thousand_idle_watchers_take_no_thread_and_starve_no_call(database_url: str, tmp_path: Path) -> None:
    with (
        ServerProcess(tmp_path, {"RAMET_DATABASE_URL": database_url}) as server,
        grpc.insecure_channel(server.address) as channel,
    ):
        storage, tree = SessionStorageStub(channel), SessionTreeStub(channel)
        for number in range(SESSIONS):
            storing.put(storage, f"s{number}")
        growing.create(tree, "a")

        def watch(number: int) -> Watch[Any]:
            request = session_pb2.WatchRecordsRequest(session_id=f"s{number % SESSIONS}", after_seq=0)
            stream = storage.WatchRecords(request) if number % 2 else tree.WatchTree(tree_pb2.WatchTreeRequest())
            found: Watch[Any] = Watch(stream)
            found.read()
            return found

        watches = [watch(number) for number in range(40)]
        tasks = Path(f"/proc/{server.process.pid}/task")
        before = len(list(tasks.iterdir()))
        watches += [watch(number) for number in range(40, WATCHERS)]
        # gRPC's own pool may breathe a little.
        assert len(list(tasks.iterdir())) <= before + 4
        for number in range(50):
            assert storing.append(storage, f"s{number}", storing.user("hello")).seqs == [1]
        growing.create(tree, "b")
        for number, each in enumerate(watches):
            if number % 2 == 0:
                assert told([each.read()]) == "+b"
            elif number % SESSIONS < 50:
                assert [record.content for record in each.read().records] == ["hello"]
        assert len(list(tasks.iterdir())) <= before + 4
        assert server.terminate() == 0, server.log.read_text()
        ends = {(end.code, end.reason) for end in (each.end() for each in watches)}
        assert ends == {(grpc.StatusCode.UNAVAILABLE, "DRAINING")}
