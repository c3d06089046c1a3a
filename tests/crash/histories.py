"""What clients did and saw, and what of it cannot be explained.

Every content is unique, so a record tells which write it came from. Times are of one monotonic clock. The sessions
are only appended to, so whatever showed at some moment must be a beginning of what shows at the end.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Seen = Sequence[tuple[int, str]]
"""Records as seq and content, ascending."""


@dataclass(frozen=True)
class Write:
    """One append."""

    session_id: str
    contents: Sequence[str]
    began: float
    ended: float | None
    """None where no reply ever came: it may have taken effect, once, at any time since it began."""
    seqs: Sequence[int] = ()


@dataclass(frozen=True)
class Read:
    """One read of a whole session, or of a fork of it."""

    session_id: str
    began: float
    ended: float
    seen: Seen


@dataclass
class History:
    """What all clients did and saw."""

    writes: list[Write] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    counted: int = 0
    """Acknowledged transactions, each of which counted itself in the store."""

    @property
    def acknowledged(self) -> int:
        """Writes that were acknowledged."""
        return sum(write.ended is not None for write in self.writes)


def faults(history: History, final: Mapping[str, Seen]) -> list[str]:
    """Returns what cannot be explained of a history, given what each session shows at the end."""
    return [
        fault
        for session_id in sorted({write.session_id for write in history.writes} | final.keys())
        for fault in _faults(
            session_id,
            [write for write in history.writes if write.session_id == session_id],
            [read for read in history.reads if read.session_id == session_id],
            final.get(session_id, ()),
        )
    ]


def _faults(session_id: str, writes: Sequence[Write], reads: Sequence[Read], final: Seen) -> Iterator[str]:
    yield from (f"{session_id}: {fault}" for fault in _of_writes(writes, final))
    yield from (f"{session_id}: {fault}" for fault in _of_order(writes))
    yield from (f"{session_id}: {fault}" for fault in _of_reads(writes, reads, final))


def _of_writes(writes: Sequence[Write], final: Seen) -> Iterator[str]:
    places: dict[str, list[int]] = {}
    for seq, content in final:
        places.setdefault(content, []).append(seq)
    known = {content for write in writes for content in write.contents}
    for content in places.keys() - known:
        yield f"{content!r} shows and nobody wrote it"
    for write in writes:
        found = [places.get(content, []) for content in write.contents]
        if any(len(seqs) > 1 for seqs in found):
            yield f"{write.contents} show more than once: {found}"
        elif write.ended is not None and [seqs[:1] for seqs in found] != [[seq] for seq in write.seqs]:
            yield f"{write.contents} were acknowledged at {write.seqs} and show at {found}"
        elif len({len(seqs) for seqs in found}) > 1:
            yield f"{write.contents} show in part: {found}"


def _of_order(writes: Sequence[Write]) -> Iterator[str]:
    """A write that ended before another began has the lower seqs."""
    acknowledged = [write for write in writes if write.ended is not None]
    by_end = sorted(acknowledged, key=lambda write: write.ended or 0.0)
    highest, ended = 0, 0
    for write in sorted(acknowledged, key=lambda write: write.began):
        while ended < len(by_end) and (by_end[ended].ended or 0.0) < write.began:
            highest = max(highest, *by_end[ended].seqs)
            ended += 1
        if min(write.seqs) <= highest:
            yield f"{write.contents} got {write.seqs} after a write that had ended got {highest}"


def _of_reads(writes: Sequence[Write], reads: Sequence[Read], final: Seen) -> Iterator[str]:
    began = {content: write.began for write in writes for content in write.contents}
    for read in reads:
        if list(read.seen) != list(final[: len(read.seen)]):
            yield f"a read saw what is no beginning of the end: {read.seen}"
            continue
        through = read.seen[-1][0] if read.seen else 0
        for write in writes:
            if write.ended is not None and write.ended < read.began and max(write.seqs) > through:
                yield f"a read did not see {write.contents}, acknowledged before it began"
        for _, content in read.seen:
            if began.get(content, 0.0) > read.ended:
                yield f"a read saw {content!r} before it was written"
