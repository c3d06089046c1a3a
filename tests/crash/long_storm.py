"""Two servers that are killed again and again while clients write: every acknowledged write is there, once.

How long it lasts, in seconds, can be set with ``CRASH_SECONDS``.
"""

import asyncio
import contextlib
import os
import random
from pathlib import Path

import pytest

import ramet
from tests.crash.clients import COUNTED, BusyClient, seen_in
from tests.crash.histories import History, faults
from tests.crash.verified import assert_verified
from tests.harness.server import ServerProcess

pytestmark = pytest.mark.timeout(600)

SECONDS = float(os.environ.get("CRASH_SECONDS", "60"))
SESSIONS = ("one", "two", "three", "four")
CLIENTS = 8
_TIMEOUT_S = 1.0
"""Shorter than a restart takes, so that calls fail and some writes are abandoned."""


async def test_every_acknowledged_write_is_there_once_whatever_was_killed(tmp_path: Path, database_url: str) -> None:
    history, kills = History(), 0
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(_server(tmp_path, database_url, "127.0.0.1:0")) for _ in range(2)]
        async with contextlib.AsyncExitStack() as connections:
            clients = [
                await connections.enter_async_context(ramet.connect(servers[number % 2].address, timeout=_TIMEOUT_S))
                for number in range(CLIENTS)
            ]
            for session_id in (*SESSIONS, COUNTED):
                await ramet.Orchestrator(clients[0]).create_root(session_id=session_id)
            over = asyncio.Event()
            async with asyncio.TaskGroup() as group:
                for number, client in enumerate(clients):
                    group.create_task(BusyClient(f"c{number}", client, SESSIONS, history).run(over))
                kills = await _kill_in_turn(servers, stack, tmp_path, database_url)
                over.set()
            client = await connections.enter_async_context(ramet.connect(servers[0].address, timeout=60))
            count = await client.sessions.get_memory(COUNTED)
            final = {session_id: await seen_in(client, session_id) for session_id in SESSIONS}
            roots = [node.id async for node in client.tree.iter_roots()]
        found = faults(history, final)
        unknown = len(history.writes) - history.acknowledged
        print(
            f"\n{database_url.partition(':')[0]}: {kills} kills, {history.acknowledged} acknowledged writes,"
            f" {unknown} unknown, {len(history.reads)} reads, {len(found)} faults"
        )
    assert kills > 0
    assert found == []
    assert count.content == str(history.counted)
    assert sorted(roots) == sorted((*SESSIONS, COUNTED))
    assert_verified(database_url)


async def _kill_in_turn(
    servers: list[ServerProcess], stack: contextlib.ExitStack, folder: Path, database_url: str
) -> int:
    """Kills the servers by turns at random moments, and starts each anew on its address; returns the kills."""
    dice = random.Random(7)
    until = asyncio.get_running_loop().time() + SECONDS
    kills = 0
    while asyncio.get_running_loop().time() < until:
        # The moment of a kill is what this is about; nothing is waited for.
        await asyncio.sleep(dice.uniform(0.2, 1.5))
        killed = servers[kills % 2]
        await asyncio.to_thread(killed.kill)
        kills += 1
        servers[(kills - 1) % 2] = await asyncio.to_thread(
            stack.enter_context, _server(folder, database_url, killed.address)
        )
    return kills


def _server(folder: Path, database_url: str, address: str) -> ServerProcess:
    return ServerProcess(
        folder, {"RAMET_DATABASE_URL": database_url, "RAMET_LISTEN": address, "RAMET_SWEEP_SECONDS": "1"}
    )
