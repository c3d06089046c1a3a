"""A fork or create that dies between its steps: nothing half-made is seen, and a retry of the whole finishes it.

letta: a crash between the steps of a fork leaves nothing half-made to see.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import ramet
from ramet.tree.v1.tree_pb2_grpc import SessionTreeStub
from tests.cases.conftest import Connect, Start
from tests.conformance.tree import making as growing
from tests.harness.server import ServerProcess


def fork(orchestrator: ramet.BlockingOrchestrator) -> str:
    """Fork the root, once."""
    made = orchestrator.fork("root", context="inherit", opening_prompt="hello", request_id="fork-1")
    return made.id


def create(orchestrator: ramet.BlockingOrchestrator) -> str:
    """Create a session below the root, once."""
    return orchestrator.create_session("root", label="new", system_prompt="p", request_id="create-1").id


@pytest.mark.parametrize("act", [fork, create])
def test_where_the_server_of_the_second_step_is_gone_nothing_shows_until_a_retry_finishes(
    two_servers: list[ServerProcess],
    shared_url: str,
    start: Start,
    connect: Connect,
    space: str,
    act: Callable[[ramet.BlockingOrchestrator], str],
) -> None:
    standing, dying = two_servers[0], start(shared_url)
    tree = SessionTreeStub(connect(standing.address))
    with ramet.connect_blocking(standing.address, space=space) as client:
        ramet.BlockingOrchestrator(client).create_root(session_id="root", system_prompt="be brief")
        client.sessions.append_records("root", [ramet.Record.user("question")])
        before = growing.entries(tree)

        dying.kill()
        with (
            ramet.connect_blocking(session=dying.address, tree=standing.address, space=space, timeout=5) as half,
            pytest.raises((ramet.Unavailable, ramet.DeadlineExceeded)),
        ):
            act(ramet.BlockingOrchestrator(half))
        assert growing.entries(tree) == before
        assert growing.nodes(tree) == ["root"]
        assert growing.children(tree, "root") == []

        made = act(ramet.BlockingOrchestrator(client))
        assert growing.outline(tree) == f"root({made})"
        shown = [record.content for record in client.sessions.get_context(made).records]
        assert shown == (["question", "hello"] if act is fork else [])
        assert act(ramet.BlockingOrchestrator(client)) == made
        assert growing.outline(tree) == f"root({made})"
