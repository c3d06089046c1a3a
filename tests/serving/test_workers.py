"""Several workers on one address, as the program runs them."""

import asyncio
import json
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest

from ramet.session.v1 import session_pb2, session_pb2_grpc
from ramet_server.serving.address import AddressRefused, check_free, held
from tests.harness.server import ServerProcess, running_server
from tests.harness.waiting import wait_until
from tests.serving.test_program import assert_refused, run

WRITERS = 12


class Writers:
    """Appends of many connections: each to a session of its own, retried until it is acknowledged or told to stop."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.stopping = False
        self.acknowledged = {f"session-{number}": 0 for number in range(WRITERS)}

    async def __aenter__(self) -> "Writers":
        self._stack = AsyncExitStack()
        self._tasks = [asyncio.create_task(self._write(name)) for name in self.acknowledged]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def ended(self) -> None:
        """Waits for all writers."""
        await asyncio.gather(*self._tasks)

    async def more(self) -> None:
        """Waits until each writer got more acknowledged."""
        before = dict(self.acknowledged)
        await until(lambda: all(self.acknowledged[name] > count for name, count in before.items()), "appends go on")

    async def _write(self, name: str) -> None:
        # Without this, channels of one process to one address share a connection.
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.initial_reconnect_backoff_ms", 100)]
        channel = await self._stack.enter_async_context(grpc.aio.insecure_channel(self._address, options=options))
        storage: session_pb2_grpc.SessionStorageAsyncStub = session_pb2_grpc.SessionStorageStub(channel)
        record = session_pb2.Record(role=session_pb2.ROLE_USER, content="hi")
        made = False
        while True:
            try:
                if not made:
                    await storage.PutSession(session_pb2.PutSessionRequest(session=session_pb2.Session(id=name)))
                    made = True
                await storage.AppendRecords(
                    session_pb2.AppendRecordsRequest(
                        session_id=name, records=[record], request_id=f"{name}-{self.acknowledged[name]}"
                    )
                )
                self.acknowledged[name] += 1
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise
                if self.stopping:
                    return


async def until(true: Any, what: str) -> None:
    """Waits for a condition beside the loop."""
    await asyncio.to_thread(wait_until, true, what)


def logged(server: ServerProcess) -> list[dict[str, Any]]:
    """The lines of the log so far."""
    return [json.loads(line) for line in server.log.read_text().splitlines(keepends=True) if line.endswith("\n")]


def started(server: ServerProcess) -> list[tuple[int, int]]:
    """The number and the pid of each worker that was started so far, in order."""
    return [(line["worker"], line["pid"]) for line in logged(server) if line["message"] == "A worker was started"]


@pytest.fixture
async def two_workers(tmp_path: Path, database_url: str) -> AsyncIterator[ServerProcess]:
    """A server of two workers, on each backend."""
    settings = {"RAMET_DATABASE_URL": database_url, "RAMET_WORKERS": "2", "RAMET_LOG_FORMAT": "json"}
    server = ServerProcess(tmp_path, settings)
    await asyncio.to_thread(server.start)
    yield server
    server.kill()


async def test_two_workers_share_the_calls_outlive_one_of_them_and_drain_without_loss(
    two_workers: ServerProcess, database_url: str
) -> None:
    server = two_workers
    async with Writers(server.address) as writers:

        def serving() -> set[int]:
            return {line["worker"] for line in logged(server) if line["message"] == "call"}

        await until(lambda: serving() == {1, 2}, "both workers serve")
        _, (number, pid) = started(server)
        os.kill(pid, signal.SIGKILL)
        await until(lambda: len(started(server)) == 3, "another worker is started")
        assert started(server)[2][0] == number
        await writers.more()
        writers.stopping = True
        assert await asyncio.to_thread(server.terminate) == 0
        await writers.ended()
    (death,) = [line for line in logged(server) if line["message"] == "A worker ended, and another is started"]
    assert (death["worker"], death["pid"], death["end"], death["level"]) == (number, pid, "SIGKILL", "ERROR")
    assert len([line for line in server.output.splitlines() if "Listening" in line]) == 1
    with running_server(database_url) as address:
        async with grpc.aio.insecure_channel(address) as channel:
            storage: session_pb2_grpc.SessionStorageAsyncStub = session_pb2_grpc.SessionStorageStub(channel)
            for name, count in writers.acknowledged.items():
                session = await storage.GetSession(session_pb2.GetSessionRequest(session_id=name))
                assert session.head_seq == count


def test_workers_end_with_a_parent_that_was_killed(tmp_path: Path) -> None:
    settings = {"RAMET_DATABASE_URL": f"sqlite:///{tmp_path}/ramet.db", "RAMET_WORKERS": "2"}
    with ServerProcess(tmp_path, settings) as server:
        # The address is theirs alone, whether another server would share it or not.
        for workers in ("1", "2"):
            refused = run("tree", RAMET_LISTEN=server.address, RAMET_WORKERS=workers)
            assert_refused(refused, f"Cannot listen on {server.address}: Address already in use.")
        server.kill()
        wait_until(lambda: _is_free(server.address), "the workers are gone")
        wait_until(lambda: server.log.read_text().count("Drained worker=") == 2, "both workers drained")


def _is_free(address: str) -> bool:
    try:
        check_free(address)
    except AddressRefused:
        return False
    return True


def test_workers_are_refused_an_address_that_one_server_has(sqlite_url: str) -> None:
    with running_server(sqlite_url) as address:
        assert_refused(run("all", RAMET_LISTEN=address, RAMET_WORKERS="2"), "Address already in use")


def test_held_address_is_free_for_nobody_else_and_shared_by_those_who_ask_to() -> None:
    with held("127.0.0.1:0") as address:
        port = int(address.rpartition(":")[2])
        with pytest.raises(AddressRefused):
            check_free(address)
        with pytest.raises(AddressRefused), held(address):
            pass
        with (
            socket.create_server(("127.0.0.1", port), reuse_port=True),
            socket.create_server(("127.0.0.1", port), reuse_port=True),
            pytest.raises(AddressRefused),
        ):
            check_free(address)
        with pytest.raises(AddressRefused):
            check_free(address)
    check_free(address)


def test_workers_that_cannot_start_refuse_it_as_one_server_does(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("This is a text and no database, however long one looks at it.")
    url = f"sqlite:///{tmp_path}/text.db"
    done = run("tree", RAMET_LISTEN="127.0.0.1:0", RAMET_DATABASE_URL=url, RAMET_WORKERS="2", RAMET_LOG_LEVEL="error")
    assert_refused(done, "file is not a database")


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5"])
def test_bad_number_of_workers_is_a_usage_error(value: str) -> None:
    done = run("all", RAMET_WORKERS=value)
    assert done.exit_code == 2
    assert "RAMET_WORKERS" in done.stderr


def test_workers_are_refused_a_unix_socket(tmp_path: Path) -> None:
    done = run("all", "--workers", "2", "--listen", f"unix:{tmp_path}/socket")
    assert done.exit_code == 2
    assert "cannot share unix:" in done.stderr
