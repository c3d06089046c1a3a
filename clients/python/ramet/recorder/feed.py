"""The events of one producer in their order: under way, on disk, in memory. Only the sender's thread is here."""

import logging
from collections import deque
from collections.abc import Sequence

from ramet.recorder.backlog import ENTRY_BYTES, Backlog, Entry
from ramet.recorder.spool import Spool
from ramet.telemetry.v1 import telemetry_pb2 as pb

__all__ = ["Feed"]

_log = logging.getLogger("ramet.recorder")
_TOGETHER = 1000
_TOGETHER_BYTES = 4 * 1024 * 1024


class Feed:
    """Hands events out in their order, and keeps each until it is acknowledged.

    As long as the server takes them, events go from memory to the stream and the spool stays empty. Once they do not,
    ``spill`` writes everything to the spool, and from then on all events pass through it until it has run empty.
    """

    def __init__(self, producer_id: str, backlog: Backlog, spool: Spool | None, *, adopted: bool = False) -> None:
        self.producer_id = producer_id
        self.next_seq = 1
        """What the server expects next on this connection."""
        self.under_way_bytes = 0
        """Bytes of the events that were sent on this connection and not acknowledged."""
        self._backlog = backlog
        self._spool = spool
        self._adopted = adopted
        self._under_way: deque[Entry] = deque()
        self._unsent: deque[Entry] = deque()
        self._held_bytes = 0
        self._left = 0
        self._refused: set[int] = set()
        self._told: set[tuple[str, str]] = set()

    @property
    def spooling(self) -> bool:
        """Whether events pass through the spool."""
        return self._spool is not None and not self._spool.empty

    @property
    def empty(self) -> bool:
        """Whether nothing is left, but for what is still in the queue."""
        return not self._under_way and not self._unsent and not self.spooling

    @property
    def waiting_since(self) -> float | None:
        """Since when, by the monotonic clock, the oldest event that was taken waits; None where there is none."""
        oldest = self._under_way or self._unsent
        return oldest[0].taken_at if oldest else None

    def load(self) -> None:
        """Takes over what another process left."""
        if self._spool is not None:
            self._left = self._spool.load()
            self._backlog.settle(adopted=self._left, spooled=self._left)

    def leave(self) -> None:
        """Leaves what was not sent of it to whoever comes next."""
        self._backlog.settle(adopted=-self._left, spooled=-self._left)

    def next_batch(self, max_events: int, max_bytes: int) -> list[Entry]:
        """Returns what to send next: events by seq one after the other, or one entry that tells what was dropped.

        ``sent`` says that it was; until then the same comes again.
        """
        if not self._unsent:
            self._unsent.extend(self._more(max_events, max_bytes))
            self._hold(sum(ENTRY_BYTES + entry.size for entry in self._unsent))
        return _one_batch(self._unsent, max_events, max_bytes)

    def _more(self, max_events: int, max_bytes: int) -> list[Entry]:
        if self._spool is not None and self.spooling:
            if not self._spool.has_unread:
                self.spill()
            return self._spool.read(max_events, max_bytes)
        return [] if self._adopted else self._backlog.take(max_events, max_bytes)

    def sent(self, entries: Sequence[Entry]) -> None:
        """Says that these, the first unsent ones, are under way."""
        for entry in entries:
            self._under_way.append(self._unsent.popleft())
            self.under_way_bytes += entry.size
            self.next_seq = entry.last_seq + 1

    def resend(self, seq: int) -> None:
        """Sends again from this seq on."""
        while self._under_way and self._under_way[-1].last_seq >= seq:
            entry = self._under_way.pop()
            self.under_way_bytes -= entry.size
            self._unsent.appendleft(entry)
        self.next_seq = seq

    def disconnect(self) -> None:
        """Ends a connection: nothing is under way any more."""
        self.resend(0)
        self._refused.clear()

    def acknowledge(self, committed: int, refusals: Sequence[pb.Refusal] = ()) -> bool:
        """Lets go of what is committed or refused; returns whether that was anything."""
        for refusal in refusals:
            self._refused.add(refusal.seq)
            if (refusal.reason, refusal.field) not in self._told:
                self._told.add((refusal.reason, refusal.field))
                _log.warning("The server refuses events: %s in %s.", refusal.reason, refusal.field or "the event")
        acked = rejected = unspooled = through = 0
        while entry := self._pop(committed):
            through = entry.last_seq
            if entry.event is not None:
                refused = entry.seq in self._refused
                rejected, acked = rejected + refused, acked + (not refused)
                unspooled += entry.spooled
        self._refused = {seq for seq in self._refused if seq > committed}
        if through and self._spool is not None:
            self._spool.release(through)
        if acked or rejected:
            self._left -= (acked + rejected) if self._adopted else 0
            self._backlog.settle(acked, rejected, -unspooled)
        return through > 0

    def _pop(self, committed: int) -> Entry | None:
        for entries in (self._under_way, self._unsent):
            if entries:
                if entries[0].last_seq > committed:
                    return None
                entry = entries.popleft()
                if entries is self._under_way:
                    self.under_way_bytes -= entry.size
                self._hold(-ENTRY_BYTES - entry.size)
                return entry
        return None

    def spill(self) -> None:
        """Writes everything to the spool, as far as there is room; without a spool nothing happens."""
        if self._spool is None or self._adopted:
            return
        held = [*self._under_way, *self._unsent]
        if not self.spooling and held:
            if self._spool.append(held) < len(held):
                # All or nothing: what is held in memory is older than everything that could follow on disk.
                self._spool.release(held[-1].last_seq)
                return
            self._spool.skip()
            self._count_spooled(held)
        while entries := self._backlog.take(_TOGETHER, _TOGETHER_BYTES):
            done = self._spool.append(entries)
            self._count_spooled(entries[:done])
            if done < len(entries):
                self._backlog.put_back(entries[done:])
                return

    def _count_spooled(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            entry.spooled = True
        self._backlog.settle(spooled=sum(entry.event is not None for entry in entries))

    def give_up_first(self) -> None:
        """Gives up the first unsent event: the server takes the stream for senseless with it."""
        for entry in self._unsent:
            if entry.event is not None:
                self._hold(-entry.size)
                entry.event = None
                self._backlog.settle(rejected=1, spooled=-int(entry.spooled))
                return

    def forget(self) -> None:
        """Closes the files of a parent process, in its forked child, and leaves them to it."""
        if self._spool is not None:
            self._spool.forget()

    def close(self) -> None:
        """Closes the files."""
        if self._spool is not None:
            self._spool.unlock()

    def _hold(self, more: int) -> None:
        self._held_bytes += more
        if not self._adopted:
            self._backlog.set_under_way(self._held_bytes)


def _one_batch(entries: Sequence[Entry], max_events: int, max_bytes: int) -> list[Entry]:
    batch: list[Entry] = []
    size = 0
    for entry in entries:
        size += entry.size
        if batch and (size > max_bytes or len(batch) >= max_events or entry.seq != batch[-1].last_seq + 1):
            break
        if entry.event is None:
            return batch or [entry]
        batch.append(entry)
    return batch
