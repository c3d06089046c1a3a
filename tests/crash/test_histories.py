"""Several clients on two servers over one database: what they did and saw can be explained."""

import asyncio
import contextlib
from pathlib import Path

import ramet
from tests.crash.clients import COUNTED, BusyClient, seen_in
from tests.crash.histories import History, faults
from tests.harness.server import ServerProcess

SESSIONS = ("one", "two", "three")
CLIENTS = 8
ACTS = 25


async def test_what_many_clients_did_and_saw_can_be_explained(tmp_path: Path, database_url: str) -> None:
    settings = {"RAMET_DATABASE_URL": database_url}
    history = History()
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(ServerProcess(tmp_path, settings)) for _ in range(2)]
        async with contextlib.AsyncExitStack() as connections:
            clients = [
                await connections.enter_async_context(ramet.connect(servers[number % 2].address, timeout=60))
                for number in range(CLIENTS)
            ]
            for session_id in (*SESSIONS, COUNTED):
                await ramet.Orchestrator(clients[0]).create_root(session_id=session_id)
            over = asyncio.Event()
            over.set()
            async with asyncio.TaskGroup() as group:
                for number, client in enumerate(clients):
                    group.create_task(BusyClient(f"c{number}", client, SESSIONS, history).run(over, least=ACTS))
            count = await clients[0].sessions.get_memory(COUNTED)
            final = {session_id: await seen_in(clients[0], session_id) for session_id in SESSIONS}
    assert history.acknowledged > CLIENTS
    assert len(history.reads) > CLIENTS
    assert faults(history, final) == []
    assert count.content == str(history.counted)
