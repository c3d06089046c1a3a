"""A creation that nobody finishes is swept, and a late repetition of it still works."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import ramet
from ramet import Orchestrator
from ramet_server.database.database import Database
from ramet_server.domain.call import Call
from ramet_server.domain.limits import Limits
from tests.harness import sqlite
from tests.harness.server import running_server
from tests.sdk.dying import AFTER, Died, dying
from tree_service import build_sweep


class Later:
    """A clock that runs an hour ahead."""

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(hours=1)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database for the server and for the sweep of the test."""
    return sqlite.new_database(tmp_path)


@pytest.fixture
def swept_address(url: str) -> Iterator[str]:
    """The address of a server over it."""
    with running_server(url) as address:
        yield address


def sweep(url: str) -> int:
    """Sweeps as a server does an hour later; returns how many nodes went."""
    database = Database.open(url)
    try:
        return build_sweep(database, Limits(), Later()).waiting(Call("default"), 100).deleted
    finally:
        database.close()


async def test_a_fork_that_was_swept_can_be_repeated_as_a_whole(swept_address: str, url: str, space: str) -> None:
    async with ramet.connect(swept_address, space=space) as client:
        orchestrator = Orchestrator(client)
        await orchestrator.create_root(session_id="source")
        async with dying(swept_address, space, 1, AFTER) as doomed:
            with pytest.raises(Died):
                await doomed.fork("source", session_id="child", request_id="op-1")
        assert sweep(url) == 1
        made = await orchestrator.fork("source", session_id="child", request_id="op-1")
        assert (made.id, made.node.index) == ("child", 0)
        assert [node.id async for node in client.tree.iter_children("source")] == ["child"]
        assert sweep(url) == 0


async def test_a_repetition_does_not_bring_back_what_was_deleted(swept_address: str, url: str, space: str) -> None:
    async with ramet.connect(swept_address, space=space) as client:
        orchestrator = Orchestrator(client)
        await orchestrator.create_root(session_id="main", request_id="op-1")
        await orchestrator.delete("main")
        with pytest.raises(ramet.NotFound):
            await orchestrator.create_root(session_id="main", request_id="op-1")
        assert not (await orchestrator.read_tree()).roots
        assert not [session async for session in client.sessions.iter_sessions()]
        # The node that the repetition made again was taken back with the refusal of its content.
        assert sweep(url) == 0
