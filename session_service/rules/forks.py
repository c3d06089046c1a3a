"""Forks: a new session over the history of a source. Spans are copied, records never."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.errors import SessionNotFound
from ramet_server.domain.idempotency import Mutation, Outcome, once
from ramet_server.domain.ids import check_id, new_id
from ramet_server.domain.limits import Limits
from ramet_server.domain.text import check_text
from session_service.rules import requests, spans, tool_groups
from session_service.rules.appending import follow, light, numbered
from session_service.rules.history import History
from session_service.rules.metadata import Metadata, check_metadata
from session_service.rules.outcomes import number_in, text_in
from session_service.rules.ports import Store, UnitOfWork
from session_service.rules.record_checks import check_records
from session_service.rules.sessions import new_session
from session_service.rules.slots import SlotWrite, write_slot_in
from session_service.rules.spans import Span
from session_service.rules.tool_groups import Tracker
from session_service.rules.values import UNWRITTEN, NewRecord, Role, Session, SlotName


@dataclass(frozen=True, slots=True)
class All:
    """Inherit all that the source shows."""


@dataclass(frozen=True, slots=True)
class UpTo:
    """Inherit all up to and with a seq."""

    seq: int


@dataclass(frozen=True, slots=True)
class Last:
    """Inherit the most recent records."""

    count: int


@dataclass(frozen=True, slots=True)
class Given:
    """Begin with these records instead, as the new session's own."""

    records: Sequence[NewRecord] = ()


@dataclass(frozen=True, slots=True)
class Fork:
    """What ForkSession asks for."""

    source_session_id: str
    session_id: str
    """Empty: the server makes one."""
    metadata: Metadata
    history: All | UpTo | Last | Given
    opening_prompt: str = ""
    system_prompt: str | None = None
    """None: the source's, as it is."""


@dataclass(frozen=True, slots=True)
class Forked:
    """The new session, and what it inherited."""

    session: Session
    inherited_through_seq: int
    incomplete_records: int


@dataclass(frozen=True, slots=True)
class _Inherited:
    """The part of a source that a fork takes over."""

    shown: Sequence[Span] = ()
    left_out: int = 0

    @property
    def through(self) -> int:
        return self.shown[-1].last_seq if self.shown else 0

    @property
    def floor(self) -> int:
        return self.shown[0].first_seq - 1 if self.shown else 0


class ForkRules:
    """The rules of forks."""

    def __init__(self, store: Store, limits: Limits, clock: Clock) -> None:
        self._store = store
        self._limits = limits
        self._clock = clock

    def fork(self, call: Call, mutation: Mutation, fork: Fork) -> Forked:
        """Makes a new session; see the contract."""
        requests.check_mutation(mutation)
        check_id(fork.source_session_id, "source_session_id")
        if fork.session_id:
            check_id(fork.session_id, "session_id")
        metadata = check_metadata(fork.metadata, self._limits)
        own, sizes = self._own_records(fork)
        if isinstance(fork.history, UpTo):
            requests.check_not_negative(fork.history.seq, "up_to_seq")
        if isinstance(fork.history, Last):
            requests.check_not_negative(fork.history.count, "last")
        if fork.system_prompt is not None:
            check_text(fork.system_prompt, "system_prompt", self._limits.max_slot_bytes)
        fork = replace(fork, session_id=fork.session_id or new_id(), metadata=metadata)

        def work(unit: UnitOfWork) -> tuple[Forked, Outcome]:
            forked = _fork_in(unit, fork, own, sizes, self._clock.now())
            return forked, {
                "session_id": forked.session.session_id,
                "version": forked.session.version,
                "inherited_through_seq": forked.inherited_through_seq,
                "incomplete_records": forked.incomplete_records,
            }

        return once(self._store, call, mutation, work, _replay)

    def _own_records(self, fork: Fork) -> tuple[list[NewRecord], list[int]]:
        """Returns the records that the new session begins with beside what it inherits, and their sizes."""
        own: list[NewRecord] = []
        sizes: list[int] = []
        if isinstance(fork.history, Given):
            own += fork.history.records
            sizes += check_records(own, self._limits, "records.records")
        if fork.opening_prompt:
            check_text(fork.opening_prompt, "opening_prompt", self._limits.max_record_bytes)
            opening = NewRecord(Role.ASSISTANT, fork.opening_prompt)
            own.append(opening)
            sizes.append(opening.text_bytes())
        return own, sizes


def _fork_in(unit: UnitOfWork, fork: Fork, own: Sequence[NewRecord], sizes: Sequence[int], now: datetime) -> Forked:
    # Locked against writers: no trim can drop a span between its reading here and its copy.
    source = unit.sessions.share(fork.source_session_id)
    if source is None:
        raise SessionNotFound("No session has this id.", field="source_session_id")
    inherited = _inherit(unit, source, fork)
    session = new_session(fork.session_id, fork.metadata, now)._replace(
        head_seq=inherited.through,
        floor_seq=inherited.floor,
        max_record_bytes=source.max_record_bytes if inherited.shown else 0,
    )
    records = numbered(own, sizes, session.head_seq + 1, now)
    after = session._replace(
        head_seq=session.head_seq + len(records),
        max_record_bytes=max(session.max_record_bytes, *sizes, 0),
        open_groups=follow(unit, session, map(light, records)),
    )
    unit.sessions.insert(after)
    unit.spans.add(after.origin, [*inherited.shown, Span(after.origin, session.head_seq + 1)])
    unit.records.insert(after.origin, records)
    prompt = fork.system_prompt
    if prompt is None:
        slots = unit.slots.read(fork.source_session_id, (SlotName.SYSTEM_PROMPT,)) or {}
        prompt = slots.get(SlotName.SYSTEM_PROMPT, UNWRITTEN).content
    if prompt is not None:
        write_slot_in(unit, SlotWrite(fork.session_id, SlotName.SYSTEM_PROMPT, prompt), now)
    return Forked(after, inherited.through, inherited.left_out)


def _inherit(unit: UnitOfWork, source: Session, fork: Fork) -> _Inherited:
    """Cuts the source's spans as the fork asks, and leaves out what belongs to incomplete groups."""
    history = fork.history
    if isinstance(history, Given):
        return _Inherited()
    shown = spans.clip(unit.spans.of(source.origin), source.floor_seq + 1, source.head_seq)
    end = shown[-1].last_seq if shown else 0
    reader = History(unit.records, shown, source.max_record_bytes)
    if isinstance(history, UpTo):
        if history.seq < source.floor_seq:
            raise requests.below_floor(source.floor_seq, "up_to_seq")
        if history.seq > source.head_seq:
            raise requests.above_head(source.head_seq, "up_to_seq")
        shown = spans.clip(shown, 0, history.seq)
    if isinstance(history, Last):
        wanted = spans.seq_of_last(shown, history.count)
        if history.count == 0:
            shown = []
        elif wanted is not None:
            shown = spans.clip(shown, reader.clean_cut(wanted), spans.OPEN_END)
    if not shown:
        return _Inherited()
    incomplete = _incomplete(unit, source, reader, shown, to_the_end=shown[-1].last_seq == end)
    return _Inherited(spans.joined(spans.without(shown, incomplete)), len(incomplete))


def _incomplete(
    unit: UnitOfWork, source: Session, reader: History, shown: Sequence[Span], *, to_the_end: bool
) -> set[int]:
    """Returns the records of groups that are incomplete as of the end of what is shown."""
    first, last = shown[0].first_seq, shown[-1].last_seq
    tracker = Tracker.decode(source.open_groups) if to_the_end else None
    if tracker is not None:
        pending = tool_groups.incomplete_seqs(tracker.pending())
        return {seq for seq in pending if seq >= first} | set(unit.marks.of(source.origin, first, last))
    # The last block was open at this place, whatever became of it later. Blocks before it are marked.
    block = reader.block_before(last + 1)
    begin = block[0].seq if block else last + 1
    pending = tool_groups.incomplete_seqs(tool_groups.groups_of(block))
    return {seq for seq in pending if seq >= first} | set(unit.marks.of(source.origin, first, begin - 1))


def _replay(unit: UnitOfWork, outcome: Outcome) -> Forked:
    session = requests.found(unit.sessions.get(text_in(outcome, "session_id")))
    return Forked(
        session._replace(version=number_in(outcome, "version")),
        number_in(outcome, "inherited_through_seq"),
        number_in(outcome, "incomplete_records"),
    )
