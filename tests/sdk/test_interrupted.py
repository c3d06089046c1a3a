"""A client that dies between the steps shows nothing half-made, and whoever repeats the whole finishes it."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import ramet
from ramet import Client, Orchestrator, Record
from tests.sdk.dying import AFTER, BEFORE, Died, dying

Operation = Callable[[Orchestrator], Awaitable[Any]]


async def visible(client: Client) -> tuple[list[str], list[str], list[str]]:
    """What readers see: nodes by list, nodes by tree, sessions."""
    return (
        [node.id async for node in client.tree.iter_nodes()],
        [entry.node.id async for entry in client.tree.iter_tree()],
        [session.id async for session in client.sessions.iter_sessions()],
    )


async def create_root(orchestrator: Orchestrator) -> Any:
    return await orchestrator.create_root(label="new", system_prompt="Be brief.", request_id="op-1")


async def create_child(orchestrator: Orchestrator) -> Any:
    return await orchestrator.create_session("source", label="new", system_prompt="Be brief.", request_id="op-1")


async def fork(orchestrator: Orchestrator) -> Any:
    return await orchestrator.fork("source", context="inherit", opening_prompt="Go on.", label="new", request_id="op-1")


async def fork_named(orchestrator: Orchestrator) -> Any:
    return await orchestrator.fork("source", session_id="child", system_prompt="Own.", label="new", request_id="op-1")


MAKERS: list[Operation] = [create_root, create_child, fork, fork_named]


@pytest.mark.parametrize("moment", [BEFORE, AFTER])
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
async def test_a_creation_that_dies_is_unseen_or_whole_and_can_be_finished(
    address: str, space: str, client: Client, orchestrator: Orchestrator, make: Operation, step: int, moment: str
) -> None:
    await orchestrator.create_root(session_id="source", label="source", system_prompt="Frozen.")
    await client.sessions.append_records("source", [Record.user("Hi"), Record.assistant("Hello")])
    async with dying(address, space, step, moment) as doomed:
        with pytest.raises(Died):
            await make(doomed)

    done = (step, moment) == (2, AFTER)
    by_list, by_tree, sessions = await visible(client)
    assert sorted(by_list) == sorted(by_tree) == sorted(sessions)
    assert len(sessions) == (2 if done else 1)

    made = await make(orchestrator)
    again = await make(orchestrator)
    assert again == made
    by_list, by_tree, sessions = await visible(client)
    assert sorted(by_list) == sorted(by_tree) == sorted(sessions) == sorted(["source", made.id])
    assert made.session.label == made.node.label == "new"
    prompt = (await client.sessions.get_system_prompt(made.id)).content
    assert prompt == (await client.tree.get_config(made.id)).system_prompt
    siblings = [node async for node in client.tree.iter_roots()]
    children = [node async for node in client.tree.iter_children("source")]
    assert len(siblings) + len(children) == 2
    expected = 3 if make is fork else 0
    assert len([record async for record in client.sessions.iter_records(made.id)]) == expected


@pytest.mark.parametrize("moment", [BEFORE, AFTER])
@pytest.mark.parametrize("step", [1, 2])
async def test_a_fork_by_a_function_whose_first_run_was_done_keeps_that_run(
    address: str, space: str, client: Client, orchestrator: Orchestrator, step: int, moment: str
) -> None:
    await orchestrator.create_root(session_id="source")
    runs: list[str] = []

    async def model(_: object) -> list[Record]:
        runs.append(f"answer {len(runs) + 1}")
        return [Record.assistant(runs[-1])]

    async with dying(address, space, step, moment) as doomed:
        with pytest.raises(Died):
            await doomed.fork("source", context=model, request_id="op-1")
    made = await orchestrator.fork("source", context=model, request_id="op-1")
    done_before = (step, moment) == (2, AFTER)
    records = [record.content async for record in client.sessions.iter_records(made.id)]
    assert records == ["answer 1" if done_before else "answer 2"]
    assert len([node async for node in client.tree.iter_children("source")]) == 1


@pytest.mark.parametrize("moment", [BEFORE, AFTER])
@pytest.mark.parametrize("step", [1, 2])
async def test_a_rename_that_dies_can_be_finished(
    address: str, space: str, client: Client, orchestrator: Orchestrator, step: int, moment: str
) -> None:
    await orchestrator.create_root(session_id="source", label="old")
    async with dying(address, space, step, moment) as doomed:
        with pytest.raises(Died):
            await doomed.rename("source", "new", request_id="op-1")
    session = await orchestrator.rename("source", "new", request_id="op-1")
    assert (session.label, session.version) == ("new", 2)
    assert (await client.tree.get_node("source")).label == "new"


@pytest.mark.parametrize("moment", [BEFORE, AFTER])
@pytest.mark.parametrize("step", [1, 2, 3])
async def test_a_delete_that_dies_never_shows_a_node_without_its_session_and_can_be_finished(
    address: str, space: str, client: Client, orchestrator: Orchestrator, step: int, moment: str
) -> None:
    await orchestrator.create_root(session_id="source")
    await orchestrator.fork("source", session_id="child")
    async with dying(address, space, step, moment) as doomed:
        with pytest.raises(Died):
            await doomed.delete("source", ramet.DeletePolicy.CASCADE, request_id="op-1")
    by_list, by_tree, sessions = await visible(client)
    assert sorted(by_list) == sorted(by_tree)
    assert set(by_tree) <= set(sessions)
    deleted = await orchestrator.delete("source", ramet.DeletePolicy.CASCADE, request_id="op-1")
    assert deleted.count == 2
    assert await visible(client) == ([], [], [])
