"""A send reads once, writes once, in the order of the design, and writes nothing unless all of it succeeds."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest

import ramet
from ramet import Client, Orchestrator, Record, ToolCall
from ramet.client import Usage
from ramet.orchestrator import Budget, ModelReply, Runtime, SessionHandle
from tests.orchestrator.scripted import Calls, Gate, calls, history, model


@pytest.fixture(scope="module")
def address(each_address: str) -> str:
    """Each backend decides here."""
    return each_address


async def told(orchestrator: Orchestrator, **options: object) -> SessionHandle:
    root = await orchestrator.create_root(label="Main 主", system_prompt="Be brief.", **options)  # type: ignore[arg-type]  # any
    return orchestrator.session(root.id)


async def test_the_model_reads_prompt_name_insight_history_message_in_this_order(
    client: Client, orchestrator: Orchestrator
) -> None:
    session = await told(orchestrator)
    await client.sessions.append_records(
        session.id,
        [
            Record.user("first"),
            Record.assistant("answer"),
            Record.assistant(tool_calls=[ToolCall("lost", "grep")]),
            Record.user("second"),
        ],
    )
    await orchestrator.put_insight(session.id, "The user likes botany.")
    await orchestrator.put_memory(session.id, "never shown")
    asked = model("one", "two")
    reply = await session.send("third", model=asked)
    assert asked.texts[0] == [
        ("system", "Be brief."),
        ("system", "Session: Main 主"),
        ("system", "The user likes botany."),
        ("user", "first"),
        ("assistant", "answer"),
        ("user", "second"),
        ("user", "third"),
    ]
    assert (reply.text, reply.insight_consumed, reply.newer_insight, reply.incomplete_records) == (
        "one",
        True,
        False,
        1,
    )
    assert reply.session is not None
    assert (reply.session.turn_count, [record.seq for record in reply.records]) == (1, [5, 6])
    assert (await client.sessions.get_insight(session.id)).content is None

    again = await session.send("fourth", model=asked)
    assert asked.texts[1][2:] == [*asked.texts[0][3:], ("assistant", "one"), ("user", "fourth")]
    assert not again.insight_consumed


async def test_what_is_not_set_is_not_said(client: Client, orchestrator: Orchestrator) -> None:
    root = await orchestrator.create_root()
    asked = model()
    await orchestrator.session(root.id).send("hello", model=asked)
    assert asked.texts == [[("user", "hello")]]


async def test_a_turn_is_one_read_and_one_append(address: str, space: str) -> None:
    watched = Calls()
    async with ramet.connect(address, space=space, interceptors=[watched]) as client:
        session = await told(Orchestrator(client))
        await client.sessions.put_insight(session.id, "psst")
        del watched.made[:]
        await session.send("hello", model=model(calls(("nobody", "{}")), "done"))
        assert watched.made == ["GetContext", "AppendRecords"]


async def test_a_message_may_be_a_record(client: Client, orchestrator: Orchestrator) -> None:
    session = await told(orchestrator)
    said = Record(ramet.Role.USER, "look", name="ann", parts_json='[{"type":"text","text":"look"}]', metadata_json="{}")
    await session.send(said, model=model())
    (kept, _) = [record async for record in client.sessions.iter_records(session.id)]
    assert (kept.content, kept.name, kept.parts_json, kept.metadata_json) == ("look", "ann", said.parts_json, "{}")
    assert kept.client_time is not None


@pytest.mark.parametrize("bad", ["a\0b", "\ud800", 5, None, Record.assistant("I"), Record.system("You")])
async def test_a_message_that_no_server_takes_is_refused_before_the_model_is_asked(
    client: Client, orchestrator: Orchestrator, bad: str
) -> None:
    session = await told(orchestrator)
    asked = model()
    with pytest.raises(ramet.InvalidArgument):
        await session.send(bad, model=asked)
    assert asked.read == []


async def test_a_failed_model_writes_nothing_and_leaves_the_insight(client: Client, orchestrator: Orchestrator) -> None:
    session = await told(orchestrator)
    await orchestrator.put_insight(session.id, "psst")
    with pytest.raises(ConnectionError, match="503"):
        await session.send("hello", model=model(calls(("x", "{}")), ConnectionError("503")))
    assert await history(client, session.id) == []
    assert (await client.sessions.get_insight(session.id)).content == "psst"
    assert (await session.send("hello", model=model())).insight_consumed


async def test_a_newer_insight_stays_and_the_reply_says_so(client: Client, orchestrator: Orchestrator) -> None:
    session = await told(orchestrator)
    await orchestrator.put_insight(session.id, "older")
    gate = Gate()

    async def think(_: object) -> str:
        await gate.wait()
        return "done"

    asked = model(think)
    turn = asyncio.create_task(session.send("hello", model=asked))
    await gate.is_reached()
    await orchestrator.put_insight(session.id, "newer")
    gate.opened.set()
    reply = await turn
    assert (reply.insight_consumed, reply.newer_insight) == (False, True)
    assert ("system", "older") in asked.texts[0]
    assert (await client.sessions.get_insight(session.id)).content == "newer"
    second = await session.send("again", model=asked)
    assert (second.insight_consumed, second.newer_insight) == (True, False)
    assert ("system", "newer") in asked.texts[1]


async def test_an_insight_that_comes_during_a_turn_without_one_waits_for_the_next(
    client: Client, orchestrator: Orchestrator
) -> None:
    session = await told(orchestrator)

    async def think(_: object) -> str:
        await orchestrator.put_insight(session.id, "just now")
        return "done"

    reply = await session.send("hello", model=model(think))
    assert (reply.insight_consumed, reply.newer_insight) == (False, False)
    assert (await client.sessions.get_insight(session.id)).content == "just now"


async def test_another_clients_append_refuses_the_turn_and_nothing_is_written(
    client: Client, orchestrator: Orchestrator
) -> None:
    session = await told(orchestrator)
    await orchestrator.put_insight(session.id, "psst")

    async def think(_: object) -> str:
        await client.sessions.append_records(session.id, [Record.user("me first")])
        return "too late"

    with pytest.raises(ramet.Aborted) as refused:
        await session.send("hello", model=model(think))
    assert refused.value.reason == "STALE_HEAD"
    assert await history(client, session.id) == [("user", "me first")]
    assert (await client.sessions.get_insight(session.id)).content == "psst"


async def test_a_reply_that_was_lost_on_the_way_is_found_by_the_clients_own_retry(address: str, space: str) -> None:
    watched = Calls()
    async with ramet.connect(address, space=space, interceptors=[watched]) as client:
        session = await told(Orchestrator(client))
        watched.lose_reply_of = "AppendRecords"
        with pytest.raises(ramet.Unavailable) as lost:
            await session.send("hello", model=model("first"))
        assert len(await history(client, session.id)) == 2

        asked = model("never asked")
        found = await session.send("hello", model=asked, request_id=lost.value.request_id)
        assert (found.text, found.repeated, asked.read) == ("first", True, [])
        assert [record.seq for record in found.records] == [1, 2]
        assert len(await history(client, session.id)) == 2


async def test_a_repeated_send_returns_its_turn_whatever_came_after(client: Client, orchestrator: Orchestrator) -> None:
    session = await told(orchestrator)
    first = await session.send("hello", model=model(calls(("x", "{}")), "done"), request_id="turn-1")
    await session.send("more", model=model("more"))
    asked = model("never asked")
    again = await session.send("hello", model=asked, request_id="turn-1")
    assert (again.text, again.repeated, asked.read) == ("done", True, [])
    assert [record.seq for record in again.records] == [record.seq for record in first.records] == [1, 2, 3, 4]
    with pytest.raises(ramet.AlreadyExists) as other:
        await session.send("another message", model=asked, request_id="turn-1")
    assert other.value.reason == "REQUEST_ID_REUSED"
    await client.sessions.truncate_records(session.id, 0)
    with pytest.raises(ramet.NotFound) as gone:
        await session.send("hello", model=asked, request_id="turn-1")
    assert gone.value.reason == "RECORD_NOT_FOUND"
    assert asked.read == []


async def test_two_clients_that_repeat_one_turn_at_once_write_it_once(address: str, space: str) -> None:
    async with (
        ramet.connect(address, space=space) as one,
        ramet.connect(address, space=space) as other,
    ):
        session = await told(Orchestrator(one))
        gates = [Gate(), Gate()]

        def slow(gate: Gate, text: str) -> Callable[[object], Awaitable[str]]:
            async def think(_: object) -> str:
                await gate.wait()
                return text

            return think

        sends = [
            asyncio.create_task(
                Orchestrator(each).session(session.id).send("hi", model=model(slow(gate, text)), request_id="turn-1")
            )
            for each, gate, text in ((one, gates[0], "one"), (other, gates[1], "other"))
        ]
        for gate in gates:
            await gate.is_reached()
        gates[0].opened.set()
        first = await sends[0]
        gates[1].opened.set()
        second = await sends[1]
        assert (first.text, second.text, second.repeated) == ("one", "one", True)
        assert await history(one, session.id) == [("user", "hi"), ("assistant", "one")]


async def test_an_archived_session_is_refused_before_the_model_is_asked(
    client: Client, orchestrator: Orchestrator
) -> None:
    session = await told(orchestrator)
    await orchestrator.archive(session.id)
    asked = model()
    with pytest.raises(ramet.FailedPrecondition) as refused:
        await session.send("hello", model=asked)
    assert (refused.value.reason, asked.read) == ("SESSION_ARCHIVED", [])
    with pytest.raises(ramet.NotFound):
        await orchestrator.session("nobody").send("hello", model=asked)


async def test_a_budget_bounds_the_history(client: Client, orchestrator: Orchestrator) -> None:
    session = await told(orchestrator)
    await client.sessions.append_records(session.id, [Record.user(f"word {at}") for at in range(10)])
    asked = model()
    for budget, words in ((Budget(records=3), 3), (Budget(characters=12), 2), (Budget(), 10)):
        before = len(asked.read)
        reply = await orchestrator.session(session.id, runtime=Runtime(llm=asked, budget=budget)).send("now")
        assert len([text for _, text in asked.texts[before] if text.startswith("word")]) == words
        assert reply.older_left_out is (words < 10)
        await client.sessions.truncate_records(session.id, 10)


async def test_a_text_that_cannot_be_kept_is_made_keepable(client: Client, orchestrator: Orchestrator) -> None:
    session = await told(orchestrator)
    reply = await session.send("hello", model=model("a\0b \ud83d\ude00 c\ud800"))
    assert reply.text == "a\N{REPLACEMENT CHARACTER}b 😀 c\N{REPLACEMENT CHARACTER}"
    assert (await history(client, session.id))[1] == ("assistant", reply.text)


async def test_usage_is_summed_over_the_calls_and_unknown_where_one_does_not_tell(orchestrator: Orchestrator) -> None:
    session = await told(orchestrator)
    script = (
        ModelReply("", (ToolCall("a", "x"),), Usage(10, 4, 2, 12)),
        ModelReply("done", usage=Usage(20, None, 3, 23, cost_micros=7)),
    )
    reply = await session.send("hello", model=model(*script))
    assert reply.usage == Usage(30, None, 5, 35)
    assert len(reply.usages) == 2


async def test_the_last_record_of_a_turn_tells_the_turn(client: Client, orchestrator: Orchestrator) -> None:
    session = await told(orchestrator)
    reply = await session.send("hello", model=model("hi"))
    records = [record async for record in client.sessions.iter_records(session.id)]
    assert records[0].metadata_json is None
    assert json.loads(records[1].metadata_json or "")["ramet_turn"] == {"request_id": reply.request_id, "records": 2}


async def test_a_send_without_a_model_is_refused(orchestrator: Orchestrator) -> None:
    session = await told(orchestrator)
    with pytest.raises(ramet.InvalidArgument) as refused:
        await session.send("hello")
    assert refused.value.field == "model"
    for wrong in (lambda messages, tools: ModelReply("not asynchronous"), model(5), "gpt-x"):  # type: ignore[arg-type]
        with pytest.raises(ramet.InvalidArgument):
            await session.send("hello", model=wrong)  # type: ignore[arg-type] # what an untyped caller writes
