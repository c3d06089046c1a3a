"""The steps of a transaction: what each does within a unit of work, and what its answer tells of the session."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ramet_server.domain.errors import SessionNotFound
from ramet_server.domain.ids import check_id, new_origin
from ramet_server.domain.limits import Limits
from session_service.rules.appending import Append, Appended, append_in, check_append
from session_service.rules.ports import ContentUnit
from session_service.rules.records import PageReader, RecordPage, RecordQuery
from session_service.rules.sessions import SessionPut, checked_put, put_in
from session_service.rules.slots import SlotWrite, check_insight, check_slot_write, put_slot_in
from session_service.rules.spans import Released
from session_service.rules.trimming import (
    Trim,
    Trimmed,
    Truncate,
    check_trim,
    check_truncate,
    trim_in,
    truncate_in,
)
from session_service.rules.values import Session, Slot, SlotName

STATUS, VERSION, HEAD_SEQ, FLOOR_SEQ = "status", "version", "head_seq", "floor_seq"
"""What an answer may tell of a session, each the name of a field of ``Session``."""

_PLACE = frozenset({HEAD_SEQ, FLOOR_SEQ})
_ALL = _PLACE | {VERSION}
"""What a whole session tells: all else in it moves with one of these."""


@dataclass(frozen=True, slots=True)
class Rewound:
    """What a rewind left."""

    head_seq: int


Answer = Session | Slot | Appended | RecordPage | Trimmed | Rewound
"""What a step answers."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a step did."""

    answer: Answer | None
    """None: a read found no session."""
    released: Sequence[Released] = ()
    """What is to be swept once the step is committed."""


@dataclass(frozen=True, slots=True)
class Step:
    """One read or write of one session, its values checked."""

    session_id: str
    run: Callable[[ContentUnit, datetime], Done]
    """Does the step at a moment; over the same state it does the same again."""
    tells: frozenset[str]
    """Fields of the session that the answer rests on."""
    slots: frozenset[SlotName] = frozenset()
    """Slots whose version the answer rests on."""
    writes: bool = False
    objects: int = 0
    """Values that it keeps in memory until the end, beside itself."""


def get_session(session_id: str) -> Step:
    """Reads a session."""
    check_id(session_id, "session_id")
    return Step(session_id, lambda unit, _: Done(unit.sessions.get(session_id)), _ALL)


def put_session(put: SessionPut, limits: Limits) -> Step:
    """Creates or updates a session. An id that the server makes is made here, once."""
    # The origin too: page tokens that were handed out within the transaction stay good.
    put = replace(checked_put(put, limits), origin=new_origin())
    written = frozenset({SlotName.SYSTEM_PROMPT}) if put.system_prompt is not None else frozenset[SlotName]()
    return Step(
        put.session_id,
        lambda unit, now: Done(put_in(unit, put, now)),
        _ALL,
        written,
        writes=True,
        objects=len(put.metadata.tags or ()),
    )


def append_records(append: Append, limits: Limits) -> Step:
    """Appends records."""
    sizes = check_append(append, limits)
    consumed = frozenset({SlotName.INSIGHT}) if append.consume_insight_version is not None else frozenset[SlotName]()
    return Step(
        append.session_id,
        lambda unit, now: Done(append_in(unit, append, sizes, now)),
        _ALL,
        consumed,
        writes=True,
        objects=sum(1 + len(record.tool_calls) for record in append.records),
    )


def list_records(query: RecordQuery, space: str, limits: Limits) -> Step:
    """Reads a page of records."""
    page = PageReader(query, space, limits)

    def run(unit: ContentUnit, _: datetime) -> Done:
        try:
            found = page.read(unit)
        except SessionNotFound:
            return Done(None)
        if found is None:
            raise AssertionError("Within one state every span is full.")
        return Done(found)

    return Step(query.session_id, run, _PLACE)


def trim_records(trim: Trim) -> Step:
    """Drops the oldest records."""
    check_trim(trim)
    return Step(trim.session_id, lambda unit, now: Done(*trim_in(unit, trim, now)), _PLACE | {STATUS}, writes=True)


def truncate_records(truncate: Truncate) -> Step:
    """Drops the newest records."""
    check_truncate(truncate)

    def run(unit: ContentUnit, now: datetime) -> Done:
        head_seq, released = truncate_in(unit, truncate, now)
        return Done(Rewound(head_seq), released)

    return Step(truncate.session_id, run, _PLACE | {STATUS}, writes=True)


def get_slot(session_id: str, name: SlotName) -> Step:
    """Reads a slot."""
    check_id(session_id, "session_id")

    def run(unit: ContentUnit, _: datetime) -> Done:
        found = unit.slots.read(session_id, (name,))
        return Done(None if found is None else found[name])

    return Step(session_id, run, frozenset(), frozenset({name}))


def put_slot(write: SlotWrite, limits: Limits) -> Step:
    """Writes or unsets a slot."""
    check_slot_write(write, limits)
    return Step(
        write.session_id,
        lambda unit, now: Done(put_slot_in(unit, write, now)),
        frozenset({STATUS}),
        frozenset({write.name}),
        writes=True,
    )


def put_insight(write: SlotWrite, limits: Limits) -> Step:
    """Writes the insight."""
    check_insight(write)
    return put_slot(write, limits)
