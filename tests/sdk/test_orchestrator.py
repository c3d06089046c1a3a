"""What the orchestrator composes holds on both lines, over real servers."""

import asyncio
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

import ramet
from ramet import Client, Config, DeletePolicy, History, Orchestrator, Record, SessionStatus, ToolCall


async def talk(client: Client, session_id: str, count: int) -> None:
    records = [Record.user(f"question {number} 🌱") for number in range(1, count + 1)]
    await client.sessions.append_records(session_id, records, turn_delta=count)


async def contents(client: Client, session_id: str) -> list[str]:
    return [record.content async for record in client.sessions.iter_records(session_id)]


async def test_a_root_stands_on_both_lines(client: Client, orchestrator: Orchestrator) -> None:
    root = await orchestrator.create_root(
        label="Main 主", system_prompt="Be brief.", skills=["search"], tags=["b", "a"], metadata_json='{"b":1,"aa":2}'
    )
    session = await client.sessions.get_session(root.id)
    assert session == root.session
    assert (session.label, session.tags, session.metadata_json) == ("Main 主", ("a", "b"), '{"b":1,"aa":2}')
    node = await client.tree.get_node(root.id)
    assert (node.parent_id, node.label, node.depth, node.index) == (None, "Main 主", 0, 0)
    assert (await client.sessions.get_system_prompt(root.id)).content == "Be brief."
    assert await client.tree.get_config(root.id) == Config("Be brief.", ("search",), version=1)


async def test_a_child_takes_nothing_from_its_parent(client: Client, orchestrator: Orchestrator) -> None:
    root = await orchestrator.create_root(system_prompt="Be brief.", skills=["search"])
    child = await orchestrator.create_session(root.id, label="Child")
    assert (child.node.parent_id, child.node.source_session_id) == (root.id, None)
    assert await client.tree.get_config(child.id) == Config(None, None, version=0)
    assert (await client.sessions.get_system_prompt(child.id)).content is None


async def test_a_session_below_nothing_is_refused_and_leaves_nothing(
    client: Client, orchestrator: Orchestrator
) -> None:
    with pytest.raises(ramet.NotFound) as caught:
        await orchestrator.create_session("nobody", session_id="orphan")
    assert caught.value.reason == "NODE_NOT_FOUND"
    with pytest.raises(ramet.NotFound):
        await client.sessions.get_session("orphan")


@pytest.mark.parametrize(
    ("options", "expected_config", "expected_prompt"),
    [
        ({}, Config("Frozen.", ("search",), version=1), "Frozen."),
        ({"system_prompt": "Own."}, Config("Own.", ("search",), version=1), "Own."),
        ({"system_prompt": ""}, Config("", ("search",), version=1), ""),
        ({"skills": []}, Config("Frozen.", (), version=1), "Frozen."),
        ({"skills": ["read"]}, Config("Frozen.", ("read",), version=1), "Frozen."),
    ],
)
async def test_a_fork_inherits_frozen_config_where_its_options_are_silent(
    client: Client,
    orchestrator: Orchestrator,
    options: dict[str, Any],
    expected_config: Config,
    expected_prompt: str,
) -> None:
    root = await orchestrator.create_root(system_prompt="Frozen.", skills=["search"])
    await client.sessions.put_system_prompt(root.id, "What its sends begin with by now.")
    fork = await orchestrator.fork(root.id, **options)
    assert await client.tree.get_config(fork.id) == expected_config
    assert (await client.sessions.get_system_prompt(fork.id)).content == expected_prompt


async def test_a_fork_of_a_source_without_frozen_prompt_takes_the_one_in_use(
    client: Client, orchestrator: Orchestrator
) -> None:
    root = await orchestrator.create_root()
    await client.sessions.put_system_prompt(root.id, "In use.")
    fork = await orchestrator.fork(root.id)
    assert (await client.sessions.get_system_prompt(fork.id)).content == "In use."
    assert await client.tree.get_config(fork.id) == Config(None, None, version=0)


async def test_contexts_none_inherit_history_and_functions(client: Client, orchestrator: Orchestrator) -> None:
    root = await orchestrator.create_root(session_id="root")
    await talk(client, root.id, 4)
    threads = []

    def last_two(records: Sequence[Record]) -> Iterable[Record]:
        threads.append(threading.current_thread())
        return records[-2:]

    async def summary(records: Sequence[Record]) -> list[Record]:
        threads.append(threading.current_thread())
        return [Record.assistant(f"{len(records)} questions")]

    class Summariser:
        async def __call__(self, records: Sequence[Record]) -> list[Record]:
            return [Record.system(records[0].content)]

    forks = await asyncio.gather(
        orchestrator.fork("root"),
        orchestrator.fork("root", context="inherit", opening_prompt="Go on."),
        orchestrator.fork("root", context=History.last(1)),
        orchestrator.fork("root", context=last_two),
        orchestrator.fork("root", context=summary, opening_prompt="Hello."),
        orchestrator.fork("root", context=Summariser()),
    )
    every = [f"question {number} 🌱" for number in range(1, 5)]
    assert [await contents(client, fork.id) for fork in forks] == [
        [],
        [*every, "Go on."],
        every[-1:],
        every[-2:],
        ["4 questions", "Hello."],
        every[:1],
    ]
    assert [fork.inherited_through_seq for fork in forks] == [0, 4, 4, 0, 0, 0]
    assert threads[0] is not threading.current_thread() or threads[1] is not threading.current_thread()
    assert threading.current_thread() in threads
    assert await contents(client, "root") == every


async def test_a_function_that_fails_leaves_nothing(client: Client, orchestrator: Orchestrator) -> None:
    root = await orchestrator.create_root()

    def fails(_: Sequence[Record]) -> list[Record]:
        raise LookupError("no model")

    with pytest.raises(LookupError, match="no model"):
        await orchestrator.fork(root.id, context=fails, session_id="child")
    again = await orchestrator.fork(root.id, session_id="child")
    assert again.node.index == 0


async def test_an_unknown_word_for_a_context_is_refused(orchestrator: Orchestrator) -> None:
    root = await orchestrator.create_root()
    with pytest.raises(ramet.InvalidArgument, match="inhert"):
        await orchestrator.fork(root.id, context="inhert")  # type: ignore[arg-type] # what an untyped caller writes


async def test_an_incomplete_tool_call_group_is_not_inherited(client: Client, orchestrator: Orchestrator) -> None:
    root = await orchestrator.create_root()
    call = Record.assistant(tool_calls=[ToolCall("c1", "grep", '{"n":9007199254740993}')])
    await client.sessions.append_records(root.id, [Record.user("Find it."), call])
    fork = await orchestrator.fork(root.id, context="inherit")
    assert (fork.incomplete_records, await contents(client, fork.id)) == (1, ["Find it."])


async def test_a_fork_may_stand_apart_from_its_source(client: Client, orchestrator: Orchestrator) -> None:
    one, other = await orchestrator.create_root(label="one"), await orchestrator.create_root(label="other")
    fork = await orchestrator.fork(one.id, context="inherit", topology_parent=other.id)
    assert (fork.node.parent_id, fork.node.source_session_id) == (other.id, one.id)


async def test_eight_parallel_forks_of_one_parent_get_an_index_each(client: Client, orchestrator: Orchestrator) -> None:
    root = await orchestrator.create_root()
    await asyncio.gather(*(orchestrator.fork(root.id, context="inherit") for _ in range(8)))
    assert [node.index async for node in client.tree.iter_children(root.id)] == list(range(8))


async def test_an_archived_source_may_be_forked(client: Client, orchestrator: Orchestrator) -> None:
    root = await orchestrator.create_root()
    await talk(client, root.id, 2)
    assert (await orchestrator.archive(root.id)).status is SessionStatus.ARCHIVED
    fork = await orchestrator.fork(root.id, context="inherit")
    assert fork.session.status is SessionStatus.ACTIVE
    assert len(await contents(client, fork.id)) == 2
    assert (await orchestrator.restore(root.id)).status is SessionStatus.ACTIVE


async def test_digests_admit_by_label_status_and_place(client: Client, orchestrator: Orchestrator) -> None:
    for name, parent in (("a", None), ("a1", "a"), ("a2", "a"), ("b", None), ("b1", "b")):
        if parent is None:
            await orchestrator.create_root(session_id=name, label=f"{name[0]} {name}")
        else:
            await orchestrator.create_session(parent, session_id=name, label=f"{name[0]} {name}")
    await client.tree.create_session("no-session", parent_id="a", label="a node alone")
    await orchestrator.put_memory("a1", "记忆 🧠")
    await orchestrator.put_memory("a2", "")
    await orchestrator.put_insight("b1", "insight")
    await orchestrator.archive("a2")

    every = {digest.id: digest for digest in await orchestrator.list_digests()}
    assert list(every) == ["a", "b", "a1", "a2", "b1"]
    assert (every["a1"].memory, every["a2"].memory, every["b1"].memory) == ("记忆 🧠", "", None)
    assert (every["b1"].insight, every["a1"].insight, every["a1"].label) == ("insight", None, "a a1")

    async def ids(**where: Any) -> list[str]:
        return [digest.id for digest in await orchestrator.list_digests(**where)]

    assert await ids(label_prefix="a ") == ["a", "a1", "a2"]
    assert await ids(status=SessionStatus.ARCHIVED) == ["a2"]
    assert await ids(status=SessionStatus.ACTIVE, below="a") == ["a", "a1"]
    assert await ids(below="b1") == ["b1"]
    with pytest.raises(ramet.NotFound):
        await ids(below="nobody")


async def test_a_rename_is_seen_on_both_lines(client: Client, orchestrator: Orchestrator) -> None:
    root = await orchestrator.create_root(label="old")
    for _ in range(2):
        session = await orchestrator.rename(root.id, "新名字", request_id="rename-1")
        assert (session.label, session.version) == ("新名字", 2)
    assert (await client.tree.get_node(root.id)).label == "新名字"
    assert (await orchestrator.list_digests())[0].label == "新名字"


async def test_renames_at_once_leave_both_lines_alike(client: Client, orchestrator: Orchestrator) -> None:
    root = await orchestrator.create_root(label="old")
    await asyncio.gather(*(orchestrator.rename(root.id, f"name {number}") for number in range(3)))
    label = (await client.sessions.get_session(root.id)).label
    assert label in {f"name {number}" for number in range(3)}
    assert (await client.tree.get_node(root.id)).label == label


async def test_a_repeated_rename_does_not_undo_a_later_one(client: Client, orchestrator: Orchestrator) -> None:
    root = await orchestrator.create_root(label="old")
    await orchestrator.rename(root.id, "first", request_id="rename-1")
    await orchestrator.rename(root.id, "second")
    assert (await orchestrator.rename(root.id, "first", request_id="rename-1")).label == "second"
    assert (await client.tree.get_node(root.id)).label == "second"


async def test_a_rename_of_an_archived_session_changes_neither_line(client: Client, orchestrator: Orchestrator) -> None:
    root = await orchestrator.create_root(label="old")
    await orchestrator.archive(root.id)
    with pytest.raises(ramet.FailedPrecondition) as caught:
        await orchestrator.rename(root.id, "new")
    assert caught.value.reason == "SESSION_ARCHIVED"
    assert (await client.tree.get_node(root.id)).label == "old"


async def test_a_rename_of_nothing_makes_nothing(client: Client, orchestrator: Orchestrator) -> None:
    with pytest.raises(ramet.NotFound):
        await orchestrator.rename("nobody", "new")
    assert not [session async for session in client.sessions.iter_sessions()]


async def test_a_delete_takes_nodes_and_sessions_by_its_policy(client: Client, orchestrator: Orchestrator) -> None:
    root = await orchestrator.create_root(session_id="root")
    await talk(client, root.id, 3)
    await orchestrator.fork("root", session_id="fork", context="inherit")
    await orchestrator.fork("fork", session_id="below", context="inherit")
    with pytest.raises(ramet.FailedPrecondition) as caught:
        await orchestrator.delete("root")
    assert caught.value.reason == "NODE_HAS_CHILDREN"

    for _ in range(2):
        deleted = await orchestrator.delete("root", DeletePolicy.REPARENT, request_id="delete-1")
        assert (deleted.count, deleted.node_ids) == (1, ("root",))
    assert [node.id async for node in client.tree.iter_roots()] == ["fork"]
    assert len(await contents(client, "fork")) == 3
    assert [session.id async for session in client.sessions.iter_sessions()] == ["below", "fork"]

    deleted = await orchestrator.delete("fork", DeletePolicy.CASCADE)
    assert (deleted.count, sorted(deleted.node_ids)) == (2, ["below", "fork"])
    assert not [session async for session in client.sessions.iter_sessions()]


async def test_a_repeated_delete_spares_a_session_that_was_made_anew(
    client: Client, orchestrator: Orchestrator
) -> None:
    await orchestrator.create_root(session_id="main")
    await client.tree.delete_node("main", delete_sessions=True, request_id="delete-1:tree")
    await client.sessions.delete_session("main")
    await orchestrator.create_root(session_id="main", label="anew")
    await orchestrator.delete("main", request_id="delete-1")
    assert (await client.sessions.get_session("main")).label == "anew"


async def test_an_insight_may_be_taken_back(client: Client, orchestrator: Orchestrator) -> None:
    root = await orchestrator.create_root()
    await orchestrator.put_insight(root.id, "Look left.")
    assert (await client.sessions.get_insight(root.id)).content == "Look left."
    assert (await orchestrator.clear_insight(root.id)).content is None


async def test_the_forest_is_read_nested(client: Client, orchestrator: Orchestrator) -> None:
    await orchestrator.create_root(session_id="r1")
    await orchestrator.create_root(session_id="r2")
    for name, parent in (("a", "r1"), ("b", "r1"), ("c", "b"), ("d", "r2")):
        await orchestrator.create_session(parent, session_id=name)
    await talk(client, "c", 2)
    forest = await orchestrator.read_tree()
    assert [node.id for node in forest.walk()] == ["r1", "a", "b", "c", "r2", "d"]
    found = forest.find("c")
    assert found is not None
    assert (found.turn_count, found.status, found.node.depth) == (2, SessionStatus.ACTIVE, 2)
    assert [node.id for node in (await orchestrator.read_tree("b")).walk()] == ["b", "c"]
