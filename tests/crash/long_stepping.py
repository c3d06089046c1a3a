"""A server that dies in the midst of an operation leaves nothing half-made, and the operation goes on afterwards.

Meanwhile another server over the same database serves a client that writes without end. Each step is taken, or with
``CRASH_EVERY`` at 3 each third one, which takes a third of the time.
"""

import asyncio
import os
from pathlib import Path

import pytest

import ramet
from tests.crash.clients import COUNTED, BusyClient, seen_in
from tests.crash.histories import History, faults
from tests.crash.operations import OPERATIONS, Operation
from tests.crash.stepping import kill_at_each_step
from tests.crash.verified import assert_verified
from tests.harness.server import ServerProcess

pytestmark = pytest.mark.timeout(900)

SESSIONS = ("one", "two")
EVERY = int(os.environ.get("CRASH_EVERY", "1"))


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
async def test_each_step_can_be_the_last(operation: Operation, database_url: str, tmp_path: Path) -> None:
    history, over = History(), asyncio.Event()
    with ServerProcess(tmp_path, {"RAMET_DATABASE_URL": database_url}) as server:
        async with ramet.connect(server.address, space="load", timeout=30) as client:
            for session_id in (*SESSIONS, COUNTED):
                await ramet.Orchestrator(client).create_root(session_id=session_id)
            # It rests now and then, for its processor is that of the servers that die.
            loading = asyncio.create_task(BusyClient("load", client, SESSIONS, history, 0.05).run(over))
            try:
                cuts = await kill_at_each_step(operation, database_url, tmp_path, EVERY)
            finally:
                over.set()
            await loading
            final = {session_id: await seen_in(client, session_id) for session_id in SESSIONS}
    left = [cut.left for cut in cuts]
    print(
        f"\n{database_url.partition(':')[0]}, {operation}: {len(cuts)} kills, left {left.count('before')} before,"
        f" {left.count('between')} between, {left.count('after')} after;"
        f" {history.acknowledged} acknowledged writes beside"
    )
    # The last step of some operations is the only one that leaves all of it.
    assert ({"before", "after"} if EVERY == 1 else {"before"}) <= set(left)
    assert faults(history, final) == []
    assert_verified(database_url)
