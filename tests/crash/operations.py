"""The operations that a crash may cut, each over the same small forest, each with ids of its own."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import ramet
from ramet import DeletePolicy, Orchestrator, Record
from tests.crash.shown import Shown

Act = Callable[[ramet.Client], Awaitable[object]]


@dataclass(frozen=True)
class Operation:
    """One operation, repeatable by its request_id."""

    name: str
    act: Act
    between: Sequence[Callable[[Shown, Shown], Shown]] = field(default=())
    """What may show besides the state before and the state after, made of these two."""

    def __str__(self) -> str:
        return self.name


async def prepare(client: ramet.Client) -> None:
    """Makes a root with two children, one of them a fork with a fork of its own, and an archive of talk."""
    orchestrator = Orchestrator(client)
    await orchestrator.create_root(session_id="root", label="Root", system_prompt="be brief", skills=["search"])
    await client.sessions.append_records("root", [Record.user(f"talk {number}") for number in range(6)])
    await client.sessions.put_insight("root", "look at the logs")
    await orchestrator.fork("root", session_id="fork", context="inherit", label="Fork")
    await client.sessions.append_records("fork", [Record.user("mine"), Record.assistant("yours")])
    await orchestrator.fork("fork", session_id="leaf", context="inherit", opening_prompt="hello")
    await orchestrator.create_session("root", session_id="other")


async def _append(client: ramet.Client) -> object:
    records = [Record.user("question"), Record.assistant("answer")]
    return await client.sessions.append_records(
        "root", records, turn_delta=1, consume_insight_version=1, request_id="op"
    )


async def _put(client: ramet.Client) -> object:
    return await client.sessions.put_session(
        "new", label="New", tags=["a", "b"], metadata_json="{}", system_prompt="be kind", request_id="op"
    )


async def _create(client: ramet.Client) -> object:
    return await Orchestrator(client).create_session(
        "root", session_id="new", label="New", system_prompt="be kind", skills=[], request_id="op"
    )


async def _fork(client: ramet.Client) -> object:
    return await Orchestrator(client).fork(
        "fork", session_id="new", context="inherit", opening_prompt="hello", label="New", request_id="op"
    )


async def _trim(client: ramet.Client) -> object:
    return await client.sessions.trim_records("root", 2, request_id="op")


async def _rewind(client: ramet.Client) -> object:
    return await client.sessions.truncate_records("fork", 3, request_id="op")


async def _erase(client: ramet.Client) -> object:
    return await client.sessions.erase_record("root", 2, request_id="op")


async def _move(client: ramet.Client) -> object:
    return await client.tree.move_node("leaf", parent_id="other", request_id="op")


async def _delete(client: ramet.Client) -> object:
    return await Orchestrator(client).delete("fork", DeletePolicy.CASCADE, request_id="op")


async def _merge(client: ramet.Client) -> object:
    return await Orchestrator(client).merge("fork", into="other", summarize="All is well.", request_id="op")


def _without(*ids: str) -> Callable[[Shown, Shown], Shown]:
    """The nodes have gone, and of the sessions these."""

    def state(before: Shown, after: Shown) -> Shown:
        return {
            "nodes": after["nodes"],
            "sessions": {each: shown for each, shown in before["sessions"].items() if each not in ids},
        }

    return state


async def _commit(client: ramet.Client) -> object:
    async def turn(transaction: ramet.Transaction) -> None:
        insight = await transaction.get_insight("root")
        await transaction.append_records("root", [Record.user("question")], consume_insight_version=insight.version)
        await transaction.put_memory("fork", "both at once")
        await transaction.trim_records("fork", 2)

    try:
        return await client.sessions.run_in_transaction(turn, request_id="op")
    except ramet.AlreadyCommitted as found:
        return found


def _without_refs(before: Shown, after: Shown) -> Shown:
    return {"nodes": before["nodes"], "sessions": after["sessions"]}


OPERATIONS = [
    Operation("append", _append),
    Operation("put", _put),
    Operation("create", _create),
    Operation("fork", _fork),
    Operation("trim", _trim),
    Operation("rewind", _rewind),
    Operation("erase", _erase),
    Operation("move", _move),
    Operation("commit", _commit),
    # The summary comes first, and then the reference to what it sums up.
    Operation("merge", _merge, (_without_refs,)),
    # A delete takes the nodes at once; their sessions follow, one by one.
    Operation("delete", _delete, (_without(), _without("fork"), _without("leaf"))),
]

BY_NAME = {operation.name: operation for operation in OPERATIONS}
