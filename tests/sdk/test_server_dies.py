"""A server that is killed in the middle of an operation: the error tells the id with which to go on."""

import asyncio
from pathlib import Path

import grpc
import pytest

import ramet
from ramet import Orchestrator, Record
from ramet.tree.v1 import tree_pb2
from tests.harness import sqlite
from tests.harness.server import ServerProcess
from tests.sdk.dying import AFTER, Died, dying
from tests.sdk.scripted import Fails, scripted


async def test_the_error_of_a_step_tells_the_id_of_the_whole_operation() -> None:
    away = Fails(grpc.StatusCode.UNAVAILABLE, "DRAINING")
    async with scripted(CreateSession=tree_pb2.Node(id="n"), PutSession=away) as server:
        async with ramet.connect(server.address) as client:
            with pytest.raises(ramet.Unavailable) as caught:
                await Orchestrator(client).create_root()
        whole = caught.value.request_id
        assert caught.value.retryable
        assert server.heard("CreateSession")[0].request_id == f"{whole}:tree"
        assert {request.request_id for request in server.heard("PutSession")} == {f"{whole}:session"}


async def test_an_operation_goes_on_over_a_restart_of_the_server(tmp_path: Path, space: str) -> None:
    settings = {"RAMET_DATABASE_URL": sqlite.new_database(tmp_path)}
    with ServerProcess(tmp_path, settings) as server:
        async with ramet.connect(server.address, space=space) as client:
            await Orchestrator(client).create_root(session_id="source")
            await client.sessions.append_records("source", [Record.user("Hi")])
        async with dying(server.address, space, 1, AFTER) as doomed:
            with pytest.raises(Died):
                await doomed.fork("source", context="inherit", request_id="op-1")
        server.kill()
        server.start()
        async with ramet.connect(server.address, space=space) as client:
            fork = await Orchestrator(client).fork("source", context="inherit", request_id="op-1")
            assert (fork.node.index, fork.inherited_through_seq) == (0, 1)
            assert len(list((await Orchestrator(client).read_tree()).walk())) == 2


async def test_a_call_under_way_survives_a_restart_on_the_same_address(tmp_path: Path, space: str) -> None:
    settings = {"RAMET_DATABASE_URL": sqlite.new_database(tmp_path)}
    with ServerProcess(tmp_path, settings) as server:
        async with ramet.connect(server.address, space=space, timeout=30) as client:
            await client.sessions.put_session("s")
            again = {**settings, "RAMET_LISTEN": server.address}
            server.kill()
            with ServerProcess(tmp_path, again) as restarted:
                assert restarted.address == server.address
                replies = await asyncio.gather(
                    *(client.sessions.append_records("s", [Record.user(str(number))]) for number in range(20))
                )
                assert sorted(reply.seqs[0] for reply in replies) == list(range(1, 21))


async def test_a_client_gets_no_wrong_answer_while_servers_come_and_go(tmp_path: Path, space: str) -> None:
    settings = {"RAMET_DATABASE_URL": sqlite.new_database(tmp_path)}
    seqs: list[int] = []
    refusals: list[ramet.RametError] = []
    twenty_written = asyncio.Event()
    with ServerProcess(tmp_path, settings) as first:
        again = {**settings, "RAMET_LISTEN": first.address}
        async with ramet.connect(first.address, space=space) as client:
            await client.sessions.put_session("s")

            async def write() -> None:
                for number in range(60):
                    request_id = f"append-{number}"
                    while True:
                        try:
                            reply = await client.sessions.append_records(
                                "s", [Record.user(str(number))], request_id=request_id
                            )
                            break
                        except ramet.RametError as error:
                            refusals.append(error)
                    seqs.extend(reply.seqs)
                    if number == 20:
                        twenty_written.set()

            writing = asyncio.create_task(write())
            await twenty_written.wait()
            first.kill()
            with ServerProcess(tmp_path, again):
                await writing
                records = [record async for record in client.sessions.iter_records("s")]
                assert [record.content for record in records] == [str(number) for number in range(60)]
                assert [record.seq for record in records] == seqs
                assert all(error.retryable for error in refusals), refusals
