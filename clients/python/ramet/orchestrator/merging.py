"""Comparing two sessions from their common beginning, and bringing what a fork found back into another session.

A merge appends one record to its target. The record's ``metadata_json`` holds, under ``ramet_merge``:

========================  ===========================================================================
``fork_id``               the session that was summarized
``first_seq``             the first of its records that the summary covers
``last_seq``              the last of them
``common_through_seq``    the last seq up to which both sessions showed the same records; 0 for none
``merged_at``             the client's time, RFC 3339 in UTC
``request_id``            the merge's own id
========================  ===========================================================================

These keys are stable. A later merge of the same fork covers what came after ``last_seq``.
"""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, TypeAlias

from ramet.client import (
    AlreadyExists,
    Client,
    FailedPrecondition,
    NotFound,
    Record,
    Role,
)
from ramet.client.arguments import of_kind, refused
from ramet.orchestrator.calling import call
from ramet.orchestrator.repeating import took_effect
from ramet.orchestrator.steps import Steps

__all__ = ["ForkDiff", "ForkSide", "Merged", "RefOutcome", "Summarize", "compare", "iter_own", "merge"]

Summarize: TypeAlias = str | Callable[[Sequence[Record]], str | Awaitable[str]]
"""A summary, or what makes one of the fork's records: synchronous (run on a thread) or asynchronous."""

_KEY = "ramet_merge"


@dataclass(frozen=True)
class ForkSide:
    """One of two sessions that were compared."""

    session_id: str
    """The session."""
    after_seq: int
    """Its records after this seq are not part of what both begin with."""
    first_own_seq: int
    """The first of those that the other does not show anywhere; 0 when there is none."""
    head_seq: int
    """Its head when they were compared."""


@dataclass(frozen=True)
class ForkDiff:
    """How two sessions compare."""

    common_through_seq: int
    """Up to this seq both show the very same records; 0 when they share no beginning."""
    left: ForkSide
    """Where the left session goes on."""
    right: ForkSide
    """Where the right session goes on."""


class RefOutcome(Enum):
    """What became of the reference from a merge's target to the fork."""

    THERE = "there"
    """It is there, added now or before."""
    ILLEGAL = "illegal"
    """None may be: the two are one session, or one stands above the other."""
    NO_NODE = "no node"
    """None can be: one of them has no place in the forest."""
    NOT_TRIED = "not tried"
    """There was nothing to merge, and there never had been."""


@dataclass(frozen=True)
class Merged:
    """What a merge did."""

    record_seq: int | None
    """The summary in the target; None where there was nothing new, or where it was trimmed or erased since."""
    nothing_new: bool
    """Whether the fork had no record that the target does not show and no earlier merge covers."""
    first_seq: int
    """The fork's first record that the summary covers; 0 where that is not known."""
    last_seq: int
    """The last one; 0 where that is not known."""
    common_through_seq: int
    """Where the two parted when they were merged; 0 where they share no beginning."""
    ref: RefOutcome
    """The reference from the target to the fork."""


async def compare(client: Client, left_id: str, right_id: str) -> ForkDiff:
    """Compares two sessions, without reading a record."""
    diff = await client.sessions.diff_sessions(left_id, right_id)

    def side(session_id: str, first_own_seq: int, head_seq: int, floor_seq: int) -> ForkSide:
        return ForkSide(session_id, max(diff.common_through_seq, floor_seq), first_own_seq, head_seq)

    left, right = diff.left, diff.right
    return ForkDiff(
        diff.common_through_seq,
        side(left_id, left.first_own_seq, left.head_seq, left.floor_seq),
        side(right_id, right.first_own_seq, right.head_seq, right.floor_seq),
    )


def iter_own(client: Client, side: ForkSide) -> AsyncGenerator[Record, None]:
    """Yields the records of a side after the common beginning, page by page."""
    of_kind(ForkSide, side, "side")
    return client.sessions.iter_records(side.session_id, after_seq=side.after_seq)


async def merge(client: Client, steps: Steps, fork_id: str, into: str, summarize: Summarize, role: Role) -> Merged:
    """Merges a fork into a target; see ``Orchestrator.merge``."""
    append_id = steps.id_of("append")
    if await took_effect(client, into, append_id):
        return await _repeated(client, steps, fork_id, into)
    diff = await compare(client, fork_id, into)
    before = await _last_merge(client, diff.right, fork_id=fork_id)
    covered = max(diff.left.after_seq, before.told["last_seq"] if before else 0)
    extent = await _extent(client, fork_id, covered)
    if extent is None:
        ref = await _refer(client, steps, into, fork_id) if before else RefOutcome.NOT_TRIED
        return Merged(None, True, 0, 0, diff.common_through_seq, ref)
    first, last = extent
    if isinstance(summarize, str):
        summary = summarize
    else:
        records = [
            record async for record in client.sessions.iter_records(fork_id, after_seq=covered, before_seq=last + 1)
        ]
        summary = await _summary(summarize, records)
    now = datetime.now(UTC)
    told = {
        "fork_id": fork_id,
        "first_seq": first,
        "last_seq": last,
        "common_through_seq": diff.common_through_seq,
        "merged_at": now.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "request_id": steps.operation,
    }
    record = Record(role, summary, client_time=now, metadata_json=json.dumps({_KEY: told}))
    try:
        appended = await client.sessions.append_records(into, [record], request_id=append_id)
    except AlreadyExists as error:
        if error.reason != "REQUEST_ID_REUSED":
            raise
        # Another attempt of this very merge was faster; its summary stands, whatever ours says.
        return await _repeated(client, steps, fork_id, into)
    ref = await _refer(client, steps, into, fork_id)
    return Merged(appended.seqs[0], False, first, last, diff.common_through_seq, ref)


@dataclass(frozen=True)
class _Found:
    """A merge that a session's record tells of."""

    seq: int
    told: dict[str, Any]


async def _repeated(client: Client, steps: Steps, fork_id: str, into: str) -> Merged:
    """Tells what the earlier attempt did, and makes the reference that it may not have come to."""
    target = await client.sessions.get_session(into)
    everything = ForkSide(into, 0, 0, target.head_seq)
    found = await _last_merge(client, everything, request_id=steps.operation)
    ref = await _refer(client, steps, into, fork_id)
    if found is None:
        return Merged(None, False, 0, 0, 0, ref)
    told = found.told
    return Merged(found.seq, False, told["first_seq"], told["last_seq"], told["common_through_seq"], ref)


async def _last_merge(client: Client, target: ForkSide, **wanted: str) -> _Found | None:
    """Returns the target's newest record of a merge with these values."""
    newest_first = client.sessions.iter_records(
        target.session_id, after_seq=target.after_seq or None, before_seq=target.head_seq + 1, descending=True
    )
    try:
        async for record in newest_first:
            told = _told(record.metadata_json)
            if told is not None and all(told[name] == value for name, value in wanted.items()):
                return _Found(record.seq, told)
    finally:
        await newest_first.aclose()
    return None


def _told(metadata_json: str | None) -> dict[str, Any] | None:
    if metadata_json is None or _KEY not in metadata_json:
        return None
    try:
        told = json.loads(metadata_json)[_KEY]
        texts = [told["fork_id"], told["request_id"]]
        numbers = [told["first_seq"], told["last_seq"], told["common_through_seq"]]
    except (ValueError, TypeError, LookupError):
        # Somebody else's metadata may hold the same word.
        return None
    right = all(isinstance(each, str) for each in texts) and all(type(each) is int for each in numbers)
    return told if right else None


async def _extent(client: Client, session_id: str, after_seq: int) -> tuple[int, int] | None:
    """Returns the first and the last seq after a place; None where nothing is there."""
    last = await client.sessions.list_records(session_id, after_seq=after_seq or None, descending=True, page_size=1)
    if not last.records:
        return None
    first = await client.sessions.list_records(session_id, after_seq=after_seq or None, page_size=1)
    if not first.records:
        return None
    return first.records[0].seq, last.records[0].seq


async def _summary(function: Callable[[Sequence[Record]], Any], records: Sequence[Record]) -> str:
    summary = await call(function, records)
    if not isinstance(summary, str):
        raise refused("summarize", f"must make a text, not {type(summary).__name__}")
    return summary


async def _refer(client: Client, steps: Steps, from_id: str, to_id: str) -> RefOutcome:
    try:
        await client.tree.add_ref(from_id, to_id, request_id=steps.id_of("ref"))
    except FailedPrecondition as error:
        if error.reason != "ILLEGAL_REF":
            raise
        return RefOutcome.ILLEGAL
    except NotFound as error:
        if error.reason != "NODE_NOT_FOUND":
            raise
        return RefOutcome.NO_NODE
    return RefOutcome.THERE
