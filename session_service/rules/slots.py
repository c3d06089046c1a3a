"""Context slots: reading, writing, and the slots of many sessions."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.errors import InvalidField, RametError, too_large
from ramet_server.domain.idempotency import Mutation, Outcome, once
from ramet_server.domain.ids import check_id
from ramet_server.domain.limits import Limits
from ramet_server.domain.sharing import Alone
from ramet_server.domain.text import check_text
from session_service.rules import requests
from session_service.rules.outcomes import moment_in, number_in, packed_moment
from session_service.rules.ports import ContentUnit, Store, UnitOfWork
from session_service.rules.reading import LIGHT_CHARACTERS, read_together
from session_service.rules.values import SessionSlots, Slot, SlotName

MAX_BATCH_IDS = 10_000
_IDS_PER_QUERY = 1000


@dataclass(frozen=True, slots=True)
class SlotWrite:
    """What a write of a slot asks for."""

    session_id: str
    name: SlotName
    content: str | None
    """None: unset the slot."""
    expected_version: int | None = None


@dataclass(frozen=True, slots=True)
class SlotBatch:
    """The slots of some of many sessions."""

    sessions: Sequence[SessionSlots]
    missing_session_ids: Sequence[str]


class SlotRules:
    """The rules of slots."""

    def __init__(self, store: Store, limits: Limits, clock: Clock) -> None:
        self._store = store
        self._limits = limits
        self._clock = clock

    def get(self, call: Call, session_id: str, name: SlotName) -> Slot:
        """Returns a slot; one never written is unset, with version 0."""
        check_id(session_id, "session_id")
        found = self._store.read(call, lambda unit: unit.slots.read(session_id, (name,)))
        if found is None:
            raise requests.not_found()
        return found[name]

    def get_together(
        self, calls: Sequence[Call], session_ids: Sequence[str], name: SlotName
    ) -> list[Slot | RametError | Alone]:
        """Returns the slot that each call asks for, or its error; those answered ALONE are for ``get``."""
        return read_together(self._store, calls, session_ids, partial(_read_light, name))

    def put(self, call: Call, mutation: Mutation, write: SlotWrite) -> Slot:
        """Writes or unsets a slot; returns it as written."""
        requests.check_mutation(mutation)
        check_slot_write(write, self._limits)

        def work(unit: UnitOfWork) -> tuple[Slot, Outcome]:
            now = self._clock.now()
            slot = put_slot_in(unit, write, now)
            return slot, {"version": slot.version, "updated_at": packed_moment(now)}

        def replay(unit: UnitOfWork, outcome: Outcome) -> Slot:
            if unit.slots.read(write.session_id, (write.name,)) is None:
                raise requests.not_found()
            # The body of a repeated request is the same, so its content is what was written then.
            return Slot(write.content, number_in(outcome, "version"), moment_in(outcome, "updated_at"))

        return once(self._store, call, mutation, work, replay)

    def put_insight(self, call: Call, mutation: Mutation, write: SlotWrite) -> Slot:
        """Writes the insight, which only ``ClearInsight`` or a turn unsets."""
        check_insight(write)
        return self.put(call, mutation, write)

    def of_many(self, call: Call, session_ids: Sequence[str], names: Sequence[SlotName]) -> Iterator[SlotBatch]:
        """Yields the slots of many sessions, in order, in batches whose content is bounded."""
        if not session_ids:
            raise InvalidField("session_ids is required.", field="session_ids")
        if len(session_ids) > MAX_BATCH_IDS:
            raise too_large("session_ids", MAX_BATCH_IDS, "ids", "session_ids")
        for place, session_id in enumerate(session_ids):
            check_id(session_id, f"session_ids[{place}]")
        wanted = list(dict.fromkeys(session_ids))
        names = names or (SlotName.INSIGHT, SlotName.MEMORY)
        return self._batches(call, wanted, names)

    def _batches(self, call: Call, wanted: Sequence[str], names: Sequence[SlotName]) -> Iterator[SlotBatch]:
        for start in range(0, len(wanted), _IDS_PER_QUERY):
            chunk = wanted[start : start + _IDS_PER_QUERY]
            # Sizes first, so that no more content is in memory than one message holds.
            sizes = self._store.read(call, partial(_sizes, chunk, names))
            for part in self._parts(chunk, sizes):
                found = self._store.read(call, partial(_read, part, names))
                yield SlotBatch(
                    [found[session_id] for session_id in part if session_id in found],
                    [session_id for session_id in part if session_id not in found],
                )

    def _parts(self, chunk: Sequence[str], sizes: Mapping[str, int]) -> Iterator[list[str]]:
        part: list[str] = []
        room = self._limits.max_page_bytes
        for session_id in chunk:
            size = sizes.get(session_id, 0)
            if part and size > room:
                yield part
                part, room = [], self._limits.max_page_bytes
            part.append(session_id)
            room -= size
        if part:
            yield part


def _sizes(session_ids: Sequence[str], names: Sequence[SlotName], unit: UnitOfWork) -> Mapping[str, int]:
    return unit.slots.sizes(session_ids, names)


def _read(session_ids: Sequence[str], names: Sequence[SlotName], unit: UnitOfWork) -> Mapping[str, SessionSlots]:
    return unit.slots.read_many(session_ids, names)


def _read_light(name: SlotName, unit: UnitOfWork, session_ids: Collection[str]) -> Mapping[str, Slot]:
    return unit.slots.read_light(session_ids, name, LIGHT_CHARACTERS)


def check_slot_write(write: SlotWrite, limits: Limits) -> None:
    """Checks what can be checked before any SQL."""
    check_id(write.session_id, "session_id")
    requests.check_not_negative(write.expected_version, "expected_version")
    if write.content is not None:
        check_text(write.content, "content", limits.max_slot_bytes)


def check_insight(write: SlotWrite) -> None:
    """Checks that a write of the insight does not unset it."""
    if write.content is None:
        raise InvalidField("content is required; ClearInsight unsets the slot.", field="content")


def put_slot_in(unit: ContentUnit, write: SlotWrite, now: datetime) -> Slot:
    """Writes a slot of a session that this unit locks; returns it as written."""
    requests.writable(unit.sessions.lock(write.session_id))
    return write_slot_in(unit, write, now)


def write_slot_in(unit: ContentUnit, write: SlotWrite, now: datetime) -> Slot:
    """Writes a slot of a session that this unit has locked; returns it as written."""
    version = unit.slots.version(write.session_id, write.name)
    requests.check_version(write.expected_version, version)
    slot = Slot(write.content, version + 1, now)
    unit.slots.write(write.session_id, write.name, slot)
    return slot
