"""Each method of the clients reaches its RPC on a real server, asyncio and blocking alike."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

import ramet
from ramet import Client, Config, DeletePolicy, History, Record, Role, SessionFilter, SessionOrder, SlotName, ToolCall
from ramet.client import Diff, DiffSide, Node

TALK = [
    Record(Role.USER, "Wie viel? 多少? 🌱", name="ann", client_time=datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)),
    Record.assistant(tool_calls=[ToolCall("c1", "add", '{"b":1,"aa":9007199254740993}'), ToolCall("c2", "now")]),
    Record.tool("c1", "9007199254740994", name="add"),
    Record.tool("c2", "", name="now"),
    Record(Role.ASSISTANT, "Viel.", parts_json='[{"type":"text","text":"Viel."}]', metadata_json='{"z":1,"a":2}'),
]


@pytest.fixture
def blocking(address: str, space: str) -> Iterator[ramet.BlockingClient]:
    """A blocking client in the space of the asyncio one."""
    with ramet.connect_blocking(address, space=space) as client:
        yield client


def bare(record: Record) -> Record:
    return Record(**{**vars(record), "seq": 0, "created_at": None})


async def test_sessions_are_put_listed_filtered_and_deleted(client: Client) -> None:
    sessions = client.sessions
    made = await sessions.put_session(label="made by the server")
    assert made.id
    for number in range(3):
        await sessions.put_session(
            f"s{number}", label=f"label {number}", tags=["x", f"t{number}"], metadata_json="{}", system_prompt="p"
        )
    changed = await sessions.put_session("s0", label="", tags=(), expected_version=1)
    assert (changed.label, changed.tags, changed.metadata_json, changed.version) == ("", (), "{}", 2)
    with pytest.raises(ramet.AlreadyExists) as caught:
        await sessions.put_session("s0", expected_version=0)
    assert caught.value.reason == "SESSION_EXISTS"
    with pytest.raises(ramet.Aborted) as stale:
        await sessions.put_session("s0", label="late", expected_version=1)
    assert (stale.value.reason, stale.value.metadata["current"]) == ("STALE_VERSION", "2")

    found = await sessions.batch_get_sessions(["s2", "nobody", "s1"])
    assert ([session.id for session in found.sessions], found.missing_ids) == (["s2", "s1"], ("nobody",))
    page = await sessions.list_sessions(page_size=2)
    assert len(page.sessions) == 2
    rest = await sessions.list_sessions(page_size=2, page_token=page.next_page_token)
    assert {session.id for session in page.sessions + rest.sessions} == {made.id, "s0", "s1", "s2"}
    where = SessionFilter(tags=("x",), label_prefix="label", created_from=datetime(2020, 1, 1, tzinfo=UTC))
    listed = [
        session.id async for session in sessions.iter_sessions(where, order=SessionOrder.CREATED_AT, descending=True)
    ]
    assert listed == ["s2", "s1"]
    await sessions.delete_session("s2", expected_version=1)
    with pytest.raises(ramet.NotFound):
        await sessions.get_session("s2")


async def test_records_come_back_as_they_were_and_page_by_page(client: Client) -> None:
    sessions = client.sessions
    await sessions.put_session("s")
    appended = await sessions.append_records("s", TALK, turn_delta=1, expected_head_seq=0)
    assert appended.seqs == (1, 2, 3, 4, 5)
    assert appended.session is not None
    assert (appended.session.head_seq, appended.session.turn_count) == (5, 1)
    assert [bare(record) async for record in sessions.iter_records("s")] == TALK
    tools = [record.seq async for record in sessions.iter_records("s", roles=[Role.TOOL], descending=True)]
    assert tools == [4, 3]
    page = await sessions.list_records("s", page_size=2, offset=1, after_seq=1, before_seq=5)
    assert ([record.seq for record in page.records], page.head_seq, page.floor_seq) == ([3, 4], 5, 0)

    with pytest.raises(ramet.InvalidArgument) as caught:
        await sessions.append_records("s", [Record.user("fine"), Record(Role.USER, "no", tool_call_id="c1")])
    assert caught.value.field == "records[1].tool_call_id"
    trimmed = await sessions.trim_records("s", 2, expected_head_seq=5)
    assert (trimmed.kept_records, trimmed.floor_seq) == (4, 1)
    erased = await sessions.erase_record("s", 5)
    assert (erased.content, erased.parts_json, erased.erased_at is not None) == ("", None, True)
    assert await sessions.truncate_records("s", 4) == 6


async def test_slots_context_fork_and_diff(client: Client) -> None:
    sessions = client.sessions
    await sessions.put_session("s", system_prompt="Be brief.")
    await sessions.append_records("s", TALK)
    assert (await sessions.get_memory("s")).version == 0
    assert (await sessions.put_memory("s", "seen from outside")).version == 1
    assert (await sessions.put_memory("s", None)).content is None
    insight = await sessions.put_insight("s", "Look.", expected_version=0)
    context = await sessions.get_context("s", max_records=2, max_characters=1000)
    assert (context.system_prompt.content, context.insight) == ("Be brief.", insight)
    assert ([record.seq for record in context.records], context.older_left_out) == ([5], True)
    turn = await sessions.append_records("s", [Record.user("Go.")], consume_insight_version=insight.version)
    assert (turn.insight_consumed, turn.insight_version) == (True, 2)
    assert (await sessions.put_system_prompt("s", None)).content is None
    slots = [each async for each in sessions.batch_get_slots(["nobody", "s"], list(SlotName))]
    assert [(each.session_id, each.system_prompt and each.system_prompt.version) for each in slots] == [("s", 2)]

    fork = await sessions.fork_session("s", "fork", history=History.up_to(2), label="fork", opening_prompt="So?")
    assert (fork.inherited_through_seq, fork.incomplete_records, fork.session.head_seq) == (1, 1, 2)
    assert await sessions.diff_sessions("s", "fork") == Diff(1, DiffSide(2, 6, 0), DiffSide(2, 2, 0))


async def test_nodes_are_made_moved_listed_and_deleted(client: Client) -> None:
    tree = client.tree
    for name, parent in (("r", None), ("a", "r"), ("b", "r"), ("c", "a"), ("q", None)):
        await tree.create_session(name, parent_id=parent, label=f"node {name}", source_session_id="gone")

    async def ids(nodes: object) -> list[str]:
        return [node.id async for node in nodes]  # type: ignore[attr-defined] # any of the iterators below

    assert await ids(tree.iter_nodes(label_prefix="node", source_session_id="gone")) == ["a", "b", "c", "q", "r"]
    assert await ids(tree.iter_roots()) == ["r", "q"]
    assert await ids(tree.iter_children("r")) == ["a", "b"]
    assert await ids(tree.iter_ancestors("c")) == ["a", "r"]
    assert await ids(tree.iter_siblings("a")) == ["b"]
    assert await ids(tree.iter_descendants("r")) == ["a", "b", "c"]
    page = await tree.get_tree("r", page_size=2)
    assert [(entry.node.id, entry.status, entry.turn_count) for entry in page.entries] == [
        ("r", None, None),
        ("a", None, None),
    ]
    assert page.next_page_token is not None

    assert (await tree.update_node("a", label="new")).label == "new"
    assert (await tree.add_ref("c", "q")).refs == ("q",)
    moved = await tree.move_node("q", parent_id="c", index=0)
    assert [(ref.node_id, ref.target_id) for ref in moved.removed_refs] == [("c", "q")]
    assert (moved.node.parent_id, moved.node.depth) == ("c", 3)
    with pytest.raises(ramet.FailedPrecondition) as caught:
        await tree.move_node("a", parent_id="q")
    assert caught.value.reason == "MOVE_MAKES_CYCLE"
    assert (await tree.move_node("q", parent_id=None)).node.index == 1
    assert (await tree.remove_ref("c", "q")).refs == ()

    assert await tree.get_config("a") == Config()
    put = await tree.put_config("a", Config("p", ()), expected_version=0)
    assert put == await tree.get_config("a") == Config("p", (), version=1)
    deleted = await tree.delete_node("a", DeletePolicy.REPARENT)
    assert (deleted.count, deleted.node_ids) == (1, ("a",))
    node: Node = await tree.get_node("r")
    assert node.children == ("c", "b")


async def test_both_servers_tell_version_and_limits(client: Client, blocking: ramet.BlockingClient) -> None:
    for info in (await client.sessions.get_server_info(), await client.tree.get_server_info()):
        assert info.version
        assert info.schema_revision
        assert all(limit > 0 for limit in vars(info.limits).values())
    assert blocking.sessions.get_server_info() == await client.sessions.get_server_info()


async def test_two_spaces_never_meet(client: Client) -> None:
    other = client.with_options(space=f"{client.space}-other")
    await client.sessions.put_session("main", label="here")
    await other.sessions.put_session("main", label="there")
    await other.sessions.delete_session("main")
    assert (await client.sessions.get_session("main")).label == "here"


def test_a_blocking_program_does_the_same(blocking: ramet.BlockingClient) -> None:
    orchestrator = ramet.BlockingOrchestrator(blocking)
    root = orchestrator.create_root(label="Main", system_prompt="Be brief.")
    blocking.sessions.append_records(root.id, TALK, turn_delta=1)

    def answers(records: object) -> list[Record]:
        # A function of a blocking program may well use its blocking client.
        return [record for record in blocking.sessions.iter_records(root.id) if record.role is Role.ASSISTANT][1:]

    fork = orchestrator.fork(root.id, context=answers, label="Fork")
    assert [record.content for record in blocking.sessions.iter_records(fork.id)] == ["Viel."]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: orchestrator.fork(root.id, context="inherit", label=str(number)), range(8)))
    assert [node.index for node in blocking.tree.iter_children(root.id)] == list(range(9))
    assert len(list(orchestrator.iter_digests())) == len(orchestrator.list_digests()) == 10
    assert len(list(orchestrator.read_tree().walk())) == 10
    assert orchestrator.delete(root.id, DeletePolicy.CASCADE).count == 10


async def test_asyncio_and_blocking_clients_work_side_by_side(client: Client, blocking: ramet.BlockingClient) -> None:
    await client.sessions.put_session("s")

    def append(number: int) -> int:
        return blocking.sessions.append_records("s", [Record.user(f"thread {number}")]).seqs[0]

    threads = [asyncio.to_thread(append, number) for number in range(25)]
    tasks = [client.sessions.append_records("s", [Record.user(f"task {number}")]) for number in range(25)]
    await asyncio.gather(*threads, *tasks)
    assert [record.seq async for record in client.sessions.iter_records("s")] == list(range(1, 51))
