"""Takes events, by either door: each once, each by itself, all of a batch in one transaction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.errors import (
    Internal,
    InvalidField,
    OutcomeUnknown,
    ProducerReplaced,
    WriteConflict,
    too_large,
)
from ramet_server.domain.limits import Limits
from telemetry.rules.absorbing import absorb
from telemetry.rules.events import Candidate, Event, Refusal
from telemetry.rules.ports import KeyTaken, Producer, Store, UnitOfWork
from telemetry.rules.row_ids import RowIds

CONFLICT = "EVENT_CONFLICT"
"""Why an event is refused whose id belongs to another event."""

_ATTEMPTS = 5
_LARGEST_SEQ = (1 << 63) - 1

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Appended:
    """What came of a batch at the unary door."""

    accepted: int
    refusals: Sequence[Refusal]


@dataclass(frozen=True, slots=True)
class Batch:
    """Events of a producer, by seq one after the other."""

    first_seq: int
    candidates: Sequence[Candidate]

    @property
    def last_seq(self) -> int:
        """The seq of the last one."""
        return self.first_seq + len(self.candidates) - 1


@dataclass(frozen=True, slots=True)
class Dropped:
    """Events that a producer gave up."""

    from_seq: int
    to_seq: int


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of some steps of a stream."""

    committed_through_seq: int
    refusals: Sequence[Refusal] = ()
    gaps: int = 0
    """Steps that were not looked at, because they do not follow on what is committed."""


class IngestRules:
    """Takes events."""

    def __init__(self, store: Store, limits: Limits, clock: Clock, ids: RowIds) -> None:
        self._store = store
        self._limits = limits
        self._clock = clock
        self._ids = ids

    def append(self, call: Call, candidates: Sequence[Candidate]) -> Appended:
        """Takes a batch; events that were taken before count as accepted."""
        self.check_batch(candidates)
        try:
            refusals = self._written(call, partial(self._take, candidates))
        except Internal as fault:
            sifted = self._sifted(call, candidates, fault)
            refusals = self._written(call, partial(self._take, sifted))
        return Appended(len(candidates) - len(refusals), refusals)

    def open_stream(self, call: Call, producer_id: str, holder: str) -> int:
        """Makes a stream the newest of its producer; returns the seq through which events are committed."""

        def work(_: bool, unit: UnitOfWork) -> int:
            now = self._clock.now()
            producer = unit.producers.lock(producer_id)
            if producer is None:
                unit.producers.insert(Producer(producer_id, 0, holder, 0), now)
                return 0
            unit.producers.save(replace(producer, holder=holder), now)
            return producer.committed_through_seq

        return self._written(call, work)

    def advance(self, call: Call, producer_id: str, holder: str, steps: Sequence[Batch | Dropped]) -> Taken:
        """Takes the next steps of a stream, which were checked; raises ProducerReplaced where it is not the newest.

        What is committed already is skipped, so a step may come again. A step that leaves a gap is not taken.
        """
        try:
            return self._written(call, partial(self._advance, producer_id, holder, steps))
        except Internal as fault:
            told = [each for step in steps if isinstance(step, Batch) for each in step.candidates]
            sifted = iter(self._sifted(call, told, fault))
            again = [
                replace(step, candidates=[next(sifted) for _ in step.candidates]) if isinstance(step, Batch) else step
                for step in steps
            ]
            return self._written(call, partial(self._advance, producer_id, holder, again))

    def check_batch(self, candidates: Sequence[Candidate], field: str = "events") -> None:
        """Checks how large a batch is; raises InvalidField or TooLarge."""
        if not candidates:
            raise InvalidField(f"{field} is required.", field=field)
        if len(candidates) > self._limits.max_batch_events:
            raise too_large(field, self._limits.max_batch_events, "events", field)
        # An event that is refused for its own size must not take its neighbours with it.
        size = sum(each.size for each in candidates if isinstance(each, Event))
        if size > self._limits.max_batch_bytes:
            raise too_large(field, self._limits.max_batch_bytes, "bytes", field)

    def check_step(self, step: Batch | Dropped) -> None:
        """Checks a step of a stream; raises InvalidField or TooLarge."""
        if isinstance(step, Batch):
            self.check_batch(step.candidates, "batch.events")
            if not 1 <= step.first_seq <= step.last_seq <= _LARGEST_SEQ:
                raise InvalidField("batch.first_seq must be at least 1.", field="batch.first_seq")
        elif step.from_seq < 1:
            raise InvalidField("dropped.from_seq must be at least 1.", field="dropped.from_seq")
        elif step.to_seq < step.from_seq:
            raise InvalidField("dropped.to_seq must not lie before from_seq.", field="dropped.to_seq")

    def _advance(
        self, producer_id: str, holder: str, steps: Sequence[Batch | Dropped], looks: bool, unit: UnitOfWork
    ) -> Taken:
        producer = unit.producers.lock(producer_id)
        if producer is None or producer.holder != holder:
            raise ProducerReplaced("A newer stream of this producer has taken over.")
        committed, dropped, gaps = producer.committed_through_seq, producer.dropped_count, 0
        candidates: list[Candidate] = []
        for step in steps:
            first, last = _range(step)
            if first > committed + 1:
                gaps += 1
                continue
            if isinstance(step, Dropped):
                dropped += max(0, last - committed)
            else:
                candidates += [
                    each if each.seq == seq else replace(each, seq=seq)
                    for seq, each in enumerate(step.candidates, step.first_seq)
                ]
            committed = max(committed, last)
        # Those that are committed are looked at again only for what was refused: its Ack may be lost.
        refusals = self._take(candidates, looks, unit, producer.committed_through_seq)
        after = replace(producer, committed_through_seq=committed, dropped_count=dropped)
        if after != producer:
            unit.producers.save(after, self._clock.now())
        return Taken(committed, refusals, gaps)

    def _take(
        self, candidates: Sequence[Candidate], looks: bool, unit: UnitOfWork, committed: int = 0
    ) -> list[Refusal]:
        """Merges those events that are new and not among the committed seqs; returns what is refused, in order.

        Unless it ``looks`` for events that were taken before, it raises KeyTaken where there are some.
        """
        now = self._clock.now()
        known: dict[str, str] = {}
        if looks or any(0 < each.seq <= committed for each in candidates):
            known.update(unit.ledger.find({each.event_id for each in candidates if isinstance(each, Event)}))
        refusals: list[Refusal] = []
        new: list[Event] = []
        for each in candidates:
            if isinstance(each, Refusal):
                refusals.append(each)
                continue
            held = known.get(each.event_id)
            if held is not None and held != each.body_hash:
                refusals.append(_conflict(each))
            elif held is None and not 0 < each.seq <= committed:
                known[each.event_id] = each.body_hash
                new.append(each)
        absorb(unit, new, self._ids, now)
        if new:
            unit.ledger.add({event.event_id: event.body_hash for event in new}, now)
        return refusals

    def _sifted(self, call: Call, candidates: Sequence[Candidate], fault: Internal) -> Sequence[Candidate]:
        """Takes events one by one, and refuses those at which the server itself fails, so that they stop no others.

        Where it fails at each of them the fault is not theirs, and is raised.
        """
        sifted: list[Candidate] = []
        taken = 0
        for each in candidates:
            if isinstance(each, Event):
                alone = replace(each, seq=0)
                try:
                    self._written(call, partial(self._take, [alone]))
                    taken += 1
                except Internal as failed:
                    each = Refusal(each.event_id, failed.reason, "", "The server fails at this event.", each.seq)
            sifted.append(each)
        if not taken:
            raise fault
        return sifted

    def _written(self, call: Call, work: Callable[[bool, UnitOfWork], T]) -> T:
        """Runs ``work`` in a transaction until its outcome is known; running again changes nothing twice.

        It is told whether to look for events that were taken before. The first time it need not: nearly all
        events come once, and the keys of the ledger refuse the others. It saves a trip and a list of all ids.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return self._store.write(call, partial(work, attempt > 1))
            except OutcomeUnknown:
                if attempt == _ATTEMPTS:
                    raise
            except (KeyTaken, WriteConflict) as error:
                if attempt == _ATTEMPTS:
                    raise WriteConflict("Other writers stood in the way; try again.") from error
            call.check()
        raise AssertionError("The last attempt returns or raises.")


def _conflict(event: Event) -> Refusal:
    message = "Another event has this id; the first one stays."
    return Refusal(event.event_id, CONFLICT, "event_id", message, event.seq)


def _range(step: Batch | Dropped) -> tuple[int, int]:
    return (step.first_seq, step.last_seq) if isinstance(step, Batch) else (step.from_seq, step.to_seq)
