"""What was recorded and is not yet taken care of: a queue bounded in bytes, and the counts of everything."""

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import monotonic

from ramet.recorder.drafts import Draft, Writer
from ramet.recorder.values import Report

__all__ = ["Backlog", "Entry"]

ENTRY_BYTES = 200
"""What an entry costs beside its event, about."""


@dataclass(slots=True)
class Entry:
    """An event by its seq, or a range of seqs whose events were dropped."""

    seq: int
    last_seq: int
    kind: str
    event: bytes | None
    """The serialized event; None: dropped."""
    taken_at: float = 0.0
    """When the sender took it, by the monotonic clock."""
    spooled: bool = False
    """Whether it is on disk."""

    @property
    def size(self) -> int:
        """Bytes of the event."""
        return len(self.event) if self.event is not None else 0


class Backlog:
    """The queue between agents and the sender; agents wait for nothing but its short lock."""

    def __init__(self, max_bytes: int, writer: Writer) -> None:
        self._max_bytes = max_bytes
        self._writer = writer
        self._entries: deque[Draft | Entry] = deque()
        self._bytes = 0
        self._under_way = 0
        self._seq = 0
        self._closed = False
        self._asleep = True
        self._recorded = 0
        self._counts: Counter[str] = Counter()
        self._dropped: Counter[str] = Counter()
        # One that its holder may take again: a collection of garbage within may end a stream, which records.
        self._lock = threading.RLock()
        self.changed = threading.Condition(self._lock)
        """Notified whenever counts change that somebody may wait for; its lock guards everything here."""

    def offer(self, kind: str, draft: Draft | None) -> bool:
        """Takes an event, or drops and counts it; returns whether the sender must be woken. None: it cannot be made."""
        with self._lock:
            self._recorded += 1
            if self._closed:
                # The sender is gone, or goes: no seq is spent that nobody could account for.
                self._dropped[kind] += 1
                return False
            self._seq += 1
            if draft is None or self._bytes + self._under_way + draft.size > self._max_bytes:
                self._dropped[kind] += 1
                self._drop()
            else:
                draft.seq = self._seq
                self._entries.append(draft)
                self._bytes += draft.size
            asleep, self._asleep = self._asleep, False
            return asleep

    def _drop(self) -> None:
        last = self._entries[-1] if self._entries else None
        if isinstance(last, Entry) and last.event is None:
            last.last_seq = self._seq
        else:
            self._entries.append(Entry(self._seq, self._seq, "", None))

    def take(self, max_events: int, max_bytes: int) -> list[Entry]:
        """Gives the oldest entries to the sender, which writes them here."""
        taken: list[Draft | Entry] = []
        now, size = monotonic(), 0
        with self.changed:
            while self._entries and len(taken) < max_events:
                size += self._entries[0].size
                if taken and size > max_bytes:
                    break
                taken.append(each := self._entries.popleft())
                self._bytes -= _held(each)
        return [self._written(each, now) for each in taken]

    def _written(self, each: Draft | Entry, now: float) -> Entry:
        if isinstance(each, Entry):
            each.taken_at = now
            return each
        data = self._writer.write(each)
        if data is None:
            self.count_dropped(each.kind)
        return Entry(each.seq, each.seq, each.kind, data, now)

    def put_back(self, entries: Iterable[Entry]) -> None:
        """Takes back what could not be taken care of, in its order."""
        with self.changed:
            for entry in reversed(list(entries)):
                self._entries.appendleft(entry)
                self._bytes += _held(entry)

    def sleep(self) -> bool:
        """Says that the sender wants to be woken for the next event; returns whether there is one already."""
        with self.changed:
            self._asleep = not self._entries
            return bool(self._entries)

    def want_wake(self) -> None:
        """Says that the next event must wake the sender, whatever waits already."""
        with self.changed:
            self._asleep = True

    def set_under_way(self, size: int) -> None:
        """Says how many bytes the sender holds in memory; they count against the limit."""
        self._under_way = size

    def settle(self, acked: int = 0, rejected: int = 0, spooled: int = 0, adopted: int = 0) -> None:
        """Counts what became of events; ``spooled`` is how many more, or fewer, are on disk."""
        with self.changed:
            self._counts["acked"] += acked
            self._counts["rejected"] += rejected
            self._counts["spooled"] += spooled
            self._counts["ever_spooled"] += max(0, spooled)
            self._recorded += adopted
            self.changed.notify_all()

    def drop_all(self) -> None:
        """Drops and counts what is left; for a process that can neither send nor spool."""
        with self.changed:
            for each in self._entries:
                if isinstance(each, Draft) or each.event is not None:
                    self._dropped[each.kind] += 1
            self._entries.clear()
            self._bytes = 0
            self.changed.notify_all()

    def count_dropped(self, kind: str) -> None:
        """Counts an event that was given up after it was taken."""
        with self.changed:
            self._dropped[kind] += 1
            self.changed.notify_all()

    def close(self) -> None:
        """Takes nothing more."""
        with self.changed:
            self._closed = True

    @property
    def size(self) -> int:
        """Bytes that wait to be taken."""
        return self._bytes

    def wait(self, done: Callable[[], bool], timeout: float) -> bool:
        """Waits until something holds, which is asked under the lock."""
        with self.changed:
            return self.changed.wait_for(done, timeout)

    @property
    def settled(self) -> bool:
        """Whether nothing is pending; to be asked under the lock or where a moment more does not matter."""
        return self._pending() == 0

    def report(self) -> Report:
        """Tells what became of everything so far."""
        with self.changed:
            return Report(
                acked=self._counts["acked"],
                pending=self._pending(),
                spooled=self._counts["spooled"],
                rejected=self._counts["rejected"],
                dropped=self._dropped.total(),
                dropped_by_kind=dict(self._dropped),
                ever_spooled=self._counts["ever_spooled"],
            )

    def _pending(self) -> int:
        return self._recorded - self._counts["acked"] - self._counts["rejected"] - self._dropped.total()


def _held(each: Draft | Entry) -> int:
    if isinstance(each, Draft):
        return each.size
    return ENTRY_BYTES + each.size if each.event is not None else 0
