"""Comparing forks, and merging them back: once, whatever is lost on the way."""

import asyncio
import json
from collections.abc import Sequence

import pytest

import ramet
from ramet import BlockingOrchestrator, Client, History, Orchestrator, Record
from ramet.orchestrator import RefOutcome
from tests.harness.muffle import Muffle


async def say(client: Client, session_id: str, *words: str) -> None:
    await client.sessions.append_records(session_id, [Record.user(word) for word in words])


async def contents(client: Client, session_id: str) -> list[str]:
    return [record.content async for record in client.sessions.iter_records(session_id)]


async def told(client: Client, session_id: str, seq: int) -> dict[str, object]:
    found = [record async for record in client.sessions.iter_records(session_id) if record.seq == seq]
    metadata: dict[str, object] = json.loads(found[0].metadata_json or "{}")["ramet_merge"]
    return metadata


def joined(records: Sequence[Record]) -> str:
    return " + ".join(record.content for record in records)


async def parted(client: Client, orchestrator: Orchestrator) -> tuple[str, str]:
    """A root of two records, and a fork; each went on alone."""
    root = await orchestrator.create_root()
    await say(client, root.id, "one", "two")
    fork = await orchestrator.fork(root.id, context="inherit")
    await say(client, fork.id, "three", "four")
    await say(client, root.id, "drei")
    return root.id, fork.id


async def test_a_diff_tells_where_each_side_goes_on_and_yields_what_is_its_own(
    client: Client, orchestrator: Orchestrator
) -> None:
    root_id, fork_id = await parted(client, orchestrator)
    diff = await orchestrator.diff(fork_id, root_id)
    assert (diff.common_through_seq, diff.left.first_own_seq, diff.right.first_own_seq) == (2, 3, 3)
    assert [record.content async for record in orchestrator.iter_own_records(diff.left)] == ["three", "four"]
    assert [record.content async for record in orchestrator.iter_own_records(diff.right)] == ["drei"]


async def test_a_diff_of_trimmed_sessions_yields_what_they_still_show(
    client: Client, orchestrator: Orchestrator
) -> None:
    root_id, fork_id = await parted(client, orchestrator)
    await client.sessions.trim_records(fork_id, 1)
    diff = await orchestrator.diff(fork_id, root_id)
    assert [record.content async for record in orchestrator.iter_own_records(diff.left)] == ["four"]


async def test_a_merge_appends_one_summary_that_tells_where_it_is_from(
    client: Client, orchestrator: Orchestrator
) -> None:
    root_id, fork_id = await parted(client, orchestrator)
    merged = await orchestrator.merge(fork_id, into=root_id, summarize=joined, request_id="merge-1")
    assert await contents(client, root_id) == ["one", "two", "drei", "three + four"]
    assert merged.record_seq == 4
    assert (merged.first_seq, merged.last_seq, merged.common_through_seq, merged.nothing_new) == (3, 4, 2, False)
    # The fork stands below the root.
    assert merged.ref is RefOutcome.ILLEGAL
    metadata = await told(client, root_id, 4)
    assert str(metadata.pop("merged_at")).endswith("Z")
    assert metadata == {
        "fork_id": fork_id,
        "first_seq": 3,
        "last_seq": 4,
        "common_through_seq": 2,
        "request_id": "merge-1",
    }


async def test_a_merge_refers_to_a_fork_that_stands_elsewhere(client: Client, orchestrator: Orchestrator) -> None:
    root_id, _ = await parted(client, orchestrator)
    elsewhere = await orchestrator.create_root()
    fork = await orchestrator.fork(root_id, context="inherit", topology_parent=elsewhere.id)
    await say(client, fork.id, "found")
    merged = await orchestrator.merge(fork.id, into=root_id, summarize="It found.")
    assert merged.ref is RefOutcome.THERE
    assert (await client.tree.get_node(root_id)).refs == (fork.id,)


async def test_a_session_without_a_place_in_the_forest_merges_without_a_reference(
    client: Client, orchestrator: Orchestrator
) -> None:
    root = await orchestrator.create_root()
    await client.sessions.put_session("alone", expected_version=0)
    await say(client, "alone", "word")
    assert (await orchestrator.merge("alone", into=root.id, summarize=joined)).ref is RefOutcome.NO_NODE


async def test_a_second_merge_covers_only_what_came_since(client: Client, orchestrator: Orchestrator) -> None:
    root_id, fork_id = await parted(client, orchestrator)
    await orchestrator.merge(fork_id, into=root_id, summarize=joined)
    again = await orchestrator.merge(fork_id, into=root_id, summarize=joined)
    assert (again.nothing_new, again.record_seq) == (True, None)
    await say(client, fork_id, "five")
    more = await orchestrator.merge(fork_id, into=root_id, summarize=joined)
    assert (more.first_seq, more.last_seq) == (5, 5)
    assert await contents(client, root_id) == ["one", "two", "drei", "three + four", "five"]


async def test_a_merge_of_nothing_new_changes_nothing_and_says_so(client: Client, orchestrator: Orchestrator) -> None:
    root = await orchestrator.create_root()
    await say(client, root.id, "one")
    fork = await orchestrator.fork(root.id, context="inherit")
    before = await client.sessions.get_session(root.id)
    for source in (fork.id, root.id):
        merged = await orchestrator.merge(source, into=root.id, summarize="never said")
        assert (merged.nothing_new, merged.record_seq, merged.ref) == (True, None, RefOutcome.NOT_TRIED)
    assert await client.sessions.get_session(root.id) == before


async def test_an_unrelated_session_is_merged_whole(client: Client, orchestrator: Orchestrator) -> None:
    root_id, _ = await parted(client, orchestrator)
    other = await orchestrator.create_root()
    await say(client, other.id, "a", "b")
    merged = await orchestrator.merge(other.id, into=root_id, summarize=joined)
    assert (merged.common_through_seq, merged.first_seq, merged.last_seq) == (0, 1, 2)
    assert (await contents(client, root_id))[-1] == "a + b"


async def test_an_archived_target_is_refused_before_anything(client: Client, orchestrator: Orchestrator) -> None:
    root_id, fork_id = await parted(client, orchestrator)
    await orchestrator.archive(root_id)
    asked: list[int] = []

    def ask(records: Sequence[Record]) -> str:
        asked.append(len(records))
        return "asked"

    with pytest.raises(ramet.FailedPrecondition) as caught:
        await orchestrator.merge(fork_id, into=root_id, summarize=ask)
    assert (caught.value.reason, asked) == ("SESSION_ARCHIVED", [])


async def test_a_merge_that_is_repeated_stands_as_it_was_made(client: Client, orchestrator: Orchestrator) -> None:
    root_id, fork_id = await parted(client, orchestrator)
    first = await orchestrator.merge(fork_id, into=root_id, summarize=joined, request_id="m")
    # What happened since changes nothing: neither more records of the fork, nor an archived target.
    await say(client, fork_id, "five")
    await orchestrator.archive(root_id)
    asked: list[int] = []

    def ask(records: Sequence[Record]) -> str:
        asked.append(len(records))
        return "another summary"

    assert await orchestrator.merge(fork_id, into=root_id, summarize=ask, request_id="m") == first
    assert asked == []
    assert (await contents(client, root_id))[-1] == "three + four"


async def test_many_that_merge_with_one_request_id_append_once(client: Client, orchestrator: Orchestrator) -> None:
    root_id, fork_id = await parted(client, orchestrator)
    everybody = asyncio.Barrier(4)

    async def one(number: int) -> ramet.orchestrator.Merged:
        async def summarize(_: Sequence[Record]) -> str:
            # All have looked for an earlier merge before the first appends.
            await everybody.wait()
            return f"summary {number}"

        return await orchestrator.merge(fork_id, into=root_id, summarize=summarize, request_id="m")

    results = await asyncio.gather(*map(one, range(4)))
    assert len(set(results)) == 1
    assert len(await contents(client, root_id)) == 4


async def test_a_merge_whose_reply_is_lost_is_found_by_a_retry(address: str, space: str, client: Client) -> None:
    orchestrator = Orchestrator(client)
    root = await orchestrator.create_root()
    elsewhere = await orchestrator.create_root()
    await say(client, root.id, "one")
    fork = await orchestrator.fork(root.id, context=History.everything(), topology_parent=elsewhere.id)
    await say(client, fork.id, "two")
    made = 0

    async def summarize(_: Sequence[Record]) -> str:
        nonlocal made
        made += 1
        # From now on the server hears, but nobody hears the server.
        muffle.silence()
        return f"summary {made}"

    async with asyncio.timeout(30):
        with Muffle(address) as muffle:
            async with ramet.connect(muffle.address, space=space) as deaf:
                dying = asyncio.create_task(
                    Orchestrator(deaf).merge(fork.id, into=root.id, summarize=summarize, request_id="m")
                )
                while len(await contents(client, root.id)) < 2:
                    pass
                # As a process that dies while it waits for the reply.
                dying.cancel()
                await asyncio.wait([dying])
    merged = await orchestrator.merge(fork.id, into=root.id, summarize=summarize, request_id="m")
    assert await contents(client, root.id) == ["one", "summary 1"]
    assert (merged.record_seq, merged.ref, made) == (2, RefOutcome.THERE, 1)


def test_the_blocking_orchestrator_merges_too(address: str, space: str) -> None:
    with ramet.connect_blocking(address, space=space) as client:
        orchestrator = BlockingOrchestrator(client)
        root = orchestrator.create_root()
        fork = orchestrator.fork(root.id)
        client.sessions.append_records(fork.id, [Record.user("found")])
        diff = orchestrator.diff(fork.id, root.id)
        assert [record.content for record in orchestrator.iter_own_records(diff.left)] == ["found"]
        assert orchestrator.merge(fork.id, into=root.id, summarize=joined).record_seq == 1
