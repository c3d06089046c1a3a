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


@pytest.mark.parametrize(
    "fork",
    [
        lambda orchestrator: orchestrator.fork("source", session_id="new", context=lambda records: ["no record"]),
        lambda orchestrator: orchestrator.fork("source", session_id="new", opening_prompt="\ud800"),
        lambda orchestrator: orchestrator.fork("source", session_id="new", metadata_json={"a": 1}),
    ],
    ids=["records that are none", "half of a surrogate pair", "an object for text"],
)
async def test_what_fits_no_message_frees_its_id_too(
    client: Client, orchestrator: Orchestrator, fork: Callable[[Orchestrator], Awaitable[ramet.NewSession]]
) -> None:
    await orchestrator.create_root(session_id="source")
    with pytest.raises(ramet.InvalidArgument):
        await fork(orchestrator)
    assert (await orchestrator.fork("source", session_id="new")).node.index == 0


async def test_arguments_of_the_wrong_kind_make_nothing(client: Client, orchestrator: Orchestrator) -> None:
    nobody: str = None  # type: ignore[assignment]  # a caller without types, who lost the id of the parent
    with pytest.raises(ramet.InvalidArgument, match="create_root"):
        await orchestrator.create_session(nobody)
    with pytest.raises(ramet.InvalidArgument, match="list"):
        await orchestrator.create_root(tags="abc")
    with pytest.raises(ramet.InvalidArgument):
        await orchestrator.create_session("")
    await orchestrator.create_root(session_id="source")
    with pytest.raises(ramet.InvalidArgument):
        await orchestrator.fork("source", topology_parent="")
    assert [node.id async for node in client.tree.iter_nodes()] == ["source"]


async def test_a_session_that_exists_gets_no_node_by_a_refused_create(
    client: Client, orchestrator: Orchestrator
) -> None:
    await client.sessions.put_session("new", label="alone")
    with pytest.raises(ramet.AlreadyExists) as refused:
        await orchestrator.create_root(session_id="new")
    assert refused.value.reason == "SESSION_EXISTS"
    assert [node.id async for node in client.tree.iter_nodes()] == []
    assert (await client.sessions.get_session("new")).label == "alone"
