"""An agent's night on call, played over Ramet: run by ``make demo``.

Writes a conversation of 200 records turn by turn, forks it in every way at once, reflects over digests, delivers
insights, trims, rewinds, compares and archives. Then a help desk of agents works on five questions, and what it did is
read back: decision chains, metrics, a trace. Every number is checked on the way. The demo takes a space of its own, so
that it may run against a server in use: ``RAMET_ADDRESS=127.0.0.1:50051 make demo``.
"""

import asyncio
import sys
import uuid
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from diagnoses import Diagnoses
from drawing import draw
from ledger import Ledger
from local_services import services
from transcript import groups, read_transcript, spoken, turns

import ramet
from ramet import History, Record, Role

PROMPT = "You are the on-call assistant of 北极星商城. Measure before you conclude. Ask before you change."
SKILLS = ("query_metrics", "run_sql", "rollback")
PARALLEL_FORKS = ("query", "cache", "status-en", "status-zh", "spoken", "brief", "replay", "lessons")


class Demo:
    """The acts of the demo, in order."""

    def __init__(self, client: ramet.Client, transcript: Sequence[Record]) -> None:
        self.client = client
        self.sessions = client.sessions
        self.orchestrator = ramet.Orchestrator(client)
        self.transcript = list(transcript)
        self.ledger = Ledger()
        self.same = self.ledger.same
        self.turns = sum(record.role is Role.USER for record in transcript)
        self.groups = list(groups(self.transcript))

    async def play(self) -> None:
        """Plays every act."""
        await self.two_roots()
        await self.write_history()
        await self.read_history()
        await self.fork_in_parallel()
        await self.grow_the_forest()
        await self.digests()
        await self.insights()
        await self.trim()
        await self.rewind_and_diff()
        await self.archive()
        await self.show()

    async def two_roots(self) -> None:
        """Two conversations that stand alone."""
        act("Two roots")
        await self.orchestrator.create_root(
            session_id="incident", label="INC-4127 结账变慢 🔥", system_prompt=PROMPT, skills=SKILLS, tags=["sev-2"]
        )
        await self.orchestrator.create_root(session_id="review", label="Postmortem 复盘", tags=["sev-2"])
        roots = [(node.id, node.index, node.depth) async for node in self.client.tree.iter_roots()]
        self.same("roots", roots, [("incident", 0, 0), ("review", 1, 0)])

    async def write_history(self) -> None:
        """The transcript, one append per turn, each on the head that it saw."""
        head = 0
        for number, turn in enumerate(turns(self.transcript)):
            appended = await self.sessions.append_records(
                "incident", turn, expected_head_seq=head, turn_delta=min(number, 1), request_id=f"turn-{number}"
            )
            self.same("seqs of a turn", list(appended.seqs), list(range(head + 1, head + len(turn) + 1)))
            head = appended.seqs[-1]
        calls = sum(len(record.tool_calls) for record in self.transcript)
        act(f"A history of {head} records in {self.turns} turns, with {calls} tool calls")
        self.same("head after the history", head, 200)
        self.same("records of the transcript", len(self.transcript), 200)

        repeated = await self.sessions.append_records(
            "incident", turn, expected_head_seq=200 - len(turn), turn_delta=1, request_id=f"turn-{number}"
        )
        self.same("a repeated append gives the same seqs", repeated.seqs, appended.seqs)
        await self.refused("an append on an old head", "STALE_HEAD", self.append_one("incident", expected_head_seq=199))
        session = await self.sessions.get_session("incident")
        self.same("head, turns", (session.head_seq, session.turn_count), (200, self.turns))

    async def read_history(self) -> None:
        """Every byte comes back, and a send's context never begins inside a tool-call group."""
        records = [record async for record in self.sessions.iter_records("incident")]
        self.same("the history as it was written", [as_written(record) for record in records], self.transcript)
        place = self.groups[-1].start + 1
        context = await self.sessions.get_context("incident", max_records=len(records) - place)
        self.same(
            "context begins after the group that the budget cuts", context.records[0].seq, self.groups[-1].stop + 1
        )
        self.same("context leaves older records out", context.older_left_out, True)
        self.same("context takes nothing else out", context.incomplete_records, 0)
        self.same("context brings the system prompt", context.system_prompt.content, PROMPT)

    async def fork_in_parallel(self) -> None:
        """Eight forks at once: nothing, everything, a part, what a function makes; one stands elsewhere."""
        act("Eight forks in parallel: inherit, none, by functions, up to a seq, and below another parent")
        cut = next(group for group in self.groups[8:] if len(group) > 2)
        query = {"context": "inherit", "label": "假设一: the query", "opening_prompt": "Let us doubt the query."}
        made = await asyncio.gather(
            self.fork("query", **query),
            self.fork("cache", context="inherit", label="假设二: the cache", opening_prompt="Let us doubt the cache."),
            self.fork("status-en", label="Status page"),
            self.fork("status-zh", label="客户公告 📣", system_prompt="只写中文。", skills=()),
            self.fork("spoken", context=spoken, label="What was said"),
            self.fork("brief", context=brief, label="In one line"),
            self.fork("replay", context=History.up_to(cut.start + 2), label="Replay from the middle"),
            self.fork("lessons", context="inherit", label="Lessons 🌱", topology_parent="review"),
        )
        forks = dict(zip(PARALLEL_FORKS, made, strict=True))
        said = len(spoken(self.transcript))
        expected = {
            "query": (200, 201, 0),
            "cache": (200, 201, 0),
            "status-en": (0, 0, 0),
            "status-zh": (0, 0, 0),
            "spoken": (0, said, 0),
            "brief": (0, 1, 0),
            "replay": (cut.start, cut.start, 2),
            "lessons": (200, 200, 0),
        }
        for name, fork in forks.items():
            got = (fork.inherited_through_seq, fork.session.head_seq, fork.incomplete_records)
            self.same(f"{name}: inherited, head, incomplete", got, expected[name])
            self.same(f"{name}: source", fork.node.source_session_id, "incident")
            self.same(f"{name}: records", await self.count(name), expected[name][1])
        children = [node async for node in self.client.tree.iter_children("incident")]
        self.same("children of the incident", sorted(node.id for node in children), sorted(PARALLEL_FORKS[:-1]))
        self.same("indexes of parallel forks", [node.index for node in children], list(range(7)))
        self.same("parent of the one apart", forks["lessons"].node.parent_id, "review")
        await self.configs()
        again = await self.fork(
            "query", context="inherit", label="假设一: the query", opening_prompt="Let us doubt the query."
        )
        self.same(
            "a repeated fork is the same fork", (again.id, again.node.index), ("query", forks["query"].node.index)
        )
        source = await self.sessions.get_session("incident")
        self.same("the source is only read", (source.head_seq, source.turn_count), (200, self.turns))

    async def configs(self) -> None:
        """Frozen config is inherited where an option is silent; empty skills are no skills."""
        inherited, own = await asyncio.gather(
            self.client.tree.get_config("query"), self.client.tree.get_config("status-zh")
        )
        self.same("inherited config", (inherited.system_prompt, inherited.skills), (PROMPT, SKILLS))
        self.same("own config", (own.system_prompt, own.skills), ("只写中文。", ()))
        prompts = [(await self.sessions.get_system_prompt(name)).content for name in ("query", "status-zh")]
        self.same("system prompts of forks", prompts, [PROMPT, "只写中文。"])

    async def grow_the_forest(self) -> None:
        """A fork of a fork, a plain child, and a reference across."""
        act("A fork of a fork, a child, a cross reference")
        await self.orchestrator.fork("query", session_id="charset", context="inherit", label="字符集: latin1?")
        await self.orchestrator.create_session("review", session_id="actions", label="Actions")
        await self.append_one("charset")
        self.same("records of the fork of a fork", await self.count("charset"), 202)
        self.same("its source stays", await self.count("query"), 201)
        refs = (await self.client.tree.add_ref("actions", "charset")).refs
        self.same("cross references", refs, ("charset",))
        await self.refused("a reference to an ancestor", "ILLEGAL_REF", self.client.tree.add_ref("charset", "incident"))

    async def digests(self) -> None:
        """What a reflection layer reads: every session by its memory, never by its records."""
        names = [*PARALLEL_FORKS, "charset"]
        await asyncio.gather(*(self.orchestrator.put_memory(name, f"{name}: 已记录 ✅") for name in names))
        digests = {digest.id: digest for digest in await self.orchestrator.list_digests()}
        act(f"Digests of {len(digests)} sessions")
        self.same("sessions", sorted(digests), sorted([*names, "incident", "review", "actions"]))
        self.same("memories", [digests[name].memory for name in names], [f"{name}: 已记录 ✅" for name in names])
        self.same("sessions without memory", [digests[name].memory for name in ("incident", "review")], [None, None])
        self.same("insights", [digest.insight for digest in digests.values()], [None] * 12)
        below = await self.orchestrator.list_digests(below="review")
        self.same("digests below the review", [digest.id for digest in below], ["review", "lessons", "actions"])

    async def insights(self) -> None:
        """Each insight is read by one turn; a newer one that came meanwhile stays."""
        act("Insights: one consumed, one that a newer one replaced meanwhile, one taken back")
        for name in ("query", "cache", "status-en"):
            await self.orchestrator.put_insight(name, f"给 {name}: look at DB_CHARSET.")
        waiting = [digest.id for digest in await self.orchestrator.list_digests() if digest.insight]
        self.same("insights that wait", sorted(waiting), ["cache", "query", "status-en"])

        read = (await self.sessions.get_context("query")).insight
        for attempt in ("first", "repeated"):
            turn = await self.append_one("query", consume_insight_version=read.version, request_id="query-turn")
            self.same(f"{attempt} append consumes", (turn.seqs, turn.insight_consumed), ((202,), True))
        self.same("a consumed insight is gone", (await self.sessions.get_context("query")).insight.content, None)

        old = (await self.sessions.get_context("cache")).insight
        newer = await self.orchestrator.put_insight("cache", "更新: look at the TTL.")
        turn = await self.append_one("cache", consume_insight_version=old.version)
        self.same("an older insight is not consumed", turn.insight_consumed, False)
        self.same("the newer one stays", (await self.sessions.get_insight("cache")).content, "更新: look at the TTL.")
        turn = await self.append_one("cache", consume_insight_version=newer.version)
        self.same("the next turn consumes it", turn.insight_consumed, True)

        await self.orchestrator.clear_insight("status-en")
        waiting = [digest.id for digest in await self.orchestrator.list_digests() if digest.insight]
        self.same("no insight waits any more", waiting, [])

    async def trim(self) -> None:
        """The most recent records stay; a tool-call group that the cut would split stays whole."""
        group = self.groups[-3]
        count = await self.count("cache")
        trimmed = await self.sessions.trim_records("cache", count - group.start - 1)
        act(f"Trimmed to {trimmed.kept_records} records, where {count - group.start - 1} would have split a group")
        self.same("kept records", trimmed.kept_records, count - group.start)
        self.same("trim floor", trimmed.floor_seq, group.start)
        self.same("records after the trim", await self.count("cache"), count - group.start)
        self.same("the source after a fork's trim", await self.count("incident"), 200)
        rewind = self.sessions.truncate_records("cache", group.start - 1)
        await self.refused("a rewind below the floor", "BELOW_TRIM_FLOOR", rewind)

    async def rewind_and_diff(self) -> None:
        """A fork goes back to an earlier turn and on from there; a diff tells where it left the source."""
        back = next(seq for seq in range(150, 0, -1) if self.transcript[seq].role is Role.USER)
        before = await self.sessions.get_session("query")
        head = await self.sessions.truncate_records("query", back)
        act(f"Rewound to seq {back}, and compared with the source")
        self.same("head after the rewind", head, before.head_seq + 1)
        self.same("records after the rewind", await self.count("query"), back)
        seq = (await self.append_one("query")).seqs[0]
        self.same("seqs are not reused", seq > before.head_seq, True)
        diff = await self.client.sessions.diff_sessions("query", "incident")
        self.same("common prefix", diff.common_through_seq, back)
        self.same("first own seqs", (diff.left.first_own_seq, diff.right.first_own_seq), (seq, back + 1))
        self.same("the fork of the fork keeps its own", await self.count("charset"), 202)

    async def archive(self) -> None:
        """An archived session is read, not written."""
        act("Archived the Chinese status page")
        await self.orchestrator.archive("status-zh")
        await self.refused("an append to it", "SESSION_ARCHIVED", self.append_one("status-zh"))
        self.same("its memory is still read", (await self.sessions.get_memory("status-zh")).version, 1)
        archived = await self.orchestrator.list_digests(status=ramet.SessionStatus.ARCHIVED)
        self.same("archived sessions", [digest.id for digest in archived], ["status-zh"])

    async def show(self) -> None:
        """The forest as a tree, with numbers that were checked."""
        forest = await self.orchestrator.read_tree()
        counts = {node.id: await self.count(node.id) for node in forest.walk()}
        print(f"\nThe forest in space {self.client.space}:\n")
        for line in draw(forest.roots, counts):
            print(line)
        self.same("nodes of the forest", len(counts), 12)
        self.same("roots of the forest", [root.id for root in forest.roots], ["incident", "review"])
        self.same("nodes left out", forest.left_out, ())
        turn_counts = {node.id: node.turn_count for node in forest.walk()}
        self.same("turns of the forest", sum(count or 0 for count in turn_counts.values()), self.turns + 5)

    async def fork(self, name: str, **options: Any) -> ramet.NewSession:
        """Forks the incident under a name, with a request id that a repetition shares."""
        return await self.orchestrator.fork("incident", session_id=name, request_id=f"fork-{name}", **options)

    async def append_one(self, session_id: str, **options: Any) -> ramet.client.Appended:
        """Appends a turn of one word."""
        record = Record.user("继续 👉")
        return await self.sessions.append_records(session_id, [record], turn_delta=1, **options)

    async def count(self, session_id: str) -> int:
        """Counts the records that a session shows."""
        return len([record async for record in self.sessions.iter_records(session_id)])

    async def refused(self, what: str, reason: str, call: Awaitable[object]) -> None:
        """Checks that a call is refused, and why."""
        try:
            await call
        except ramet.RametError as error:
            self.same(what, error.reason, reason)
        else:
            self.same(what, "accepted", reason)


def act(title: str) -> None:
    """Announces what comes next."""
    print(f"- {title}")


def as_written(record: Record) -> Record:
    """Takes away what the server added."""
    return replace(record, seq=0, created_at=None)


async def brief(records: Sequence[Record]) -> list[Record]:
    """Stands for a model that sums up: a fork's history by an asynchronous function."""
    await asyncio.sleep(0)
    return [Record.assistant(f"{len(records)} records, the last of them: {records[-1].content}")]


async def main() -> int:
    """Plays the demo and returns its exit code."""
    transcript = read_transcript(Path(__file__).parent / "incident.jsonl")
    with services() as at:
        async with ramet.connect(at.address, space=f"demo-{uuid.uuid4().hex[:12]}") as client:
            demo = Demo(client, transcript)
            await demo.play()
            await Diagnoses(client, at.address, at.database, demo.ledger).play()
            return demo.ledger.verdict()


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main()))
    except ramet.RametError as error:
        sys.exit(f"\n!!! THE DEMO STOPPED: {error}")
