"""A create or fork whose content is refused leaves nothing, and its id is free for a corrected attempt."""

from collections.abc import Awaitable, Callable

import pytest

import ramet
from ramet import Client, Orchestrator

BAD_TAG = "no space at an end "

Make = Callable[[Orchestrator, str], Awaitable[ramet.NewSession]]


async def _root(orchestrator: Orchestrator, tag: str) -> ramet.NewSession:
    return await orchestrator.create_root(session_id="new", tags=[tag])


async def _fork(orchestrator: Orchestrator, tag: str) -> ramet.NewSession:
    return await orchestrator.fork("source", session_id="new", tags=[tag], context="inherit")


@pytest.mark.parametrize("make", [_root, _fork])
async def test_a_refused_content_frees_its_id(client: Client, orchestrator: Orchestrator, make: Make) -> None:
    await orchestrator.create_root(session_id="source")
    with pytest.raises(ramet.InvalidArgument) as refused:
        await make(orchestrator, BAD_TAG)
    assert refused.value.reason == "INVALID_FIELD"
    assert refused.value.field in ("tags[0]", "session.tags[0]")
    assert [node.id async for node in client.tree.iter_nodes()] == ["source"]
    made = await make(orchestrator, "good")
    assert (made.id, made.session.tags) == ("new", ("good",))
    assert made.node.index == (1 if make is _root else 0)


async def test_a_session_that_exists_gets_no_node_by_a_refused_create(
    client: Client, orchestrator: Orchestrator
) -> None:
    await client.sessions.put_session("new", label="alone")
    with pytest.raises(ramet.AlreadyExists) as refused:
        await orchestrator.create_root(session_id="new")
    assert refused.value.reason == "SESSION_EXISTS"
    assert [node.id async for node in client.tree.iter_nodes()] == []
    assert (await client.sessions.get_session("new")).label == "alone"
