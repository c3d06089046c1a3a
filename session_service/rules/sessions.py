"""Metadata of sessions: reading, listing, putting, archiving."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.errors import InvalidField, RametError, SessionExists, too_large
from ramet_server.domain.idempotency import Mutation, Outcome, once
from ramet_server.domain.ids import check_id, new_id, new_origin
from ramet_server.domain.limits import Limits
from ramet_server.domain.paging import PageToken, check_page_size, query_fingerprint
from ramet_server.domain.sharing import Alone
from ramet_server.domain.text import check_label, check_text
from session_service.rules import requests
from session_service.rules.metadata import Metadata, check_metadata, check_tags
from session_service.rules.outcomes import number_in, text_in
from session_service.rules.ports import ContentUnit, Store, UnitOfWork
from session_service.rules.reading import LIGHT_CHARACTERS, read_together
from session_service.rules.session_queries import Place, SessionFilter, SessionOrder, SessionQuery, beyond_index
from session_service.rules.slots import SlotWrite, write_slot_in
from session_service.rules.spans import Span
from session_service.rules.values import Session, SlotName, Status

MAX_BATCH_IDS = 1000

_EXAMINED = 1000
"""Entries of an index that one call of a list looks at, or as many as its page holds."""

_MAX_BATCH_METADATA = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SessionPut:
    """What PutSession asks for."""

    session_id: str
    """Empty: the server makes one."""
    metadata: Metadata
    """What is given; None where it is left as it is."""
    expected_version: int | None = None
    """None: create or update. 0: create only. Else: update only."""
    system_prompt: str | None = None
    origin: str | None = None
    """Of the session, where it is created; None: a new one."""


@dataclass(frozen=True, slots=True)
class SessionBatch:
    """Some of many sessions."""

    sessions: Sequence[Session]
    missing_session_ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class SessionList:
    """What ListSessions asks for."""

    admits: SessionFilter
    order: SessionOrder = SessionOrder.ID
    descending: bool = False
    page_size: int = 0
    page_token: str = ""


@dataclass(frozen=True, slots=True)
class SessionPage:
    """A page of a list of sessions."""

    sessions: Sequence[Session]
    next_page_token: str


class SessionRules:
    """The rules of metadata."""

    def __init__(self, store: Store, limits: Limits, clock: Clock) -> None:
        self._store = store
        self._limits = limits
        self._clock = clock

    def get(self, call: Call, session_id: str) -> Session:
        """Returns one session."""
        check_id(session_id, "session_id")
        return requests.found(self._store.read(call, lambda unit: unit.sessions.get(session_id)))

    def get_together(self, calls: Sequence[Call], session_ids: Sequence[str]) -> list[Session | RametError | Alone]:
        """Returns the session that each call asks for, or its error; those answered ALONE are for ``get``."""
        return read_together(self._store, calls, session_ids, _read_light)

    def get_many(self, call: Call, session_ids: Sequence[str]) -> SessionBatch:
        """Returns many sessions in the order of the request."""
        if not session_ids:
            raise InvalidField("session_ids is required.", field="session_ids")
        if len(session_ids) > MAX_BATCH_IDS:
            raise too_large("session_ids", MAX_BATCH_IDS, "ids", "session_ids")
        for place, session_id in enumerate(session_ids):
            check_id(session_id, f"session_ids[{place}]")
        wanted = list(dict.fromkeys(session_ids))

        def read(unit: UnitOfWork) -> SessionBatch:
            # One reply cannot hold a thousand of the largest metadata_json; few can never be too much.
            many = len(wanted) * self._limits.max_json_bytes > _MAX_BATCH_METADATA
            if many and unit.sessions.metadata_size(wanted) > _MAX_BATCH_METADATA:
                raise too_large("The metadata_json of these sessions", _MAX_BATCH_METADATA, "bytes", "session_ids")
            found = unit.sessions.get_many(wanted)
            return SessionBatch(
                [found[session_id] for session_id in wanted if session_id in found],
                [session_id for session_id in wanted if session_id not in found],
            )

        return self._store.read(call, read)

    def list(self, call: Call, wanted: SessionList) -> SessionPage:
        """Returns a page, maybe a short one; see the contract."""
        admits = replace(wanted.admits, tags=check_tags(wanted.admits.tags, self._limits, "filter.tags"))
        check_label(admits.label_prefix, "filter.label_prefix", self._limits.max_label_characters)
        limit = check_page_size(wanted.page_size, self._limits.default_page_size, self._limits.max_page_size)
        by_id = wanted.order is SessionOrder.ID
        fingerprint = query_fingerprint("ListSessions", call.space, *_parts(admits), wanted.order, wanted.descending)
        token = PageToken.decode(wanted.page_token, fingerprint, (str,) if by_id else (str, datetime))
        after = None
        if token is not None:
            session_id, key = token.position[0], None if by_id else token.position[1]
            after = Place(key if isinstance(key, datetime) else None, check_id(str(session_id), "page_token"))
        looks_on = beyond_index(admits, wanted.order) != SessionFilter()
        query = SessionQuery(
            admits,
            wanted.order,
            wanted.descending,
            after,
            limit,
            # One more than a page tells whether it is the last. Of a tag 50 of 100,000 sessions took twice the time
            # of 50 of 1,000 where more was looked at.
            examine=max(_EXAMINED, limit) + 1 if looks_on else limit + 1,
            max_metadata=self._limits.max_page_bytes,
        )
        examined = self._store.read(call, lambda unit: unit.sessions.examine(query))
        place = examined.goes_on_after
        if place is None:
            return SessionPage(examined.sessions, "")
        position = (place.session_id,) if place.key is None else (place.session_id, place.key)
        return SessionPage(examined.sessions, PageToken(fingerprint, position).encode())

    def put(self, call: Call, mutation: Mutation, put: SessionPut) -> Session:
        """Creates or updates a session; see the contract."""
        requests.check_mutation(mutation)
        put = checked_put(put, self._limits)

        def work(unit: UnitOfWork) -> tuple[Session, Outcome]:
            session = put_in(unit, put, self._clock.now())
            return session, _outcome(session)

        return once(self._store, call, mutation, work, replayed_session)

    def set_status(
        self, call: Call, mutation: Mutation, session_id: str, expected_version: int | None, status: Status
    ) -> Session:
        """Archives or restores a session; nothing changes where it is so already."""
        requests.check_mutation(mutation)
        check_id(session_id, "session_id")
        requests.check_not_negative(expected_version, "expected_version")

        def work(unit: UnitOfWork) -> tuple[Session, Outcome]:
            before = requests.found(unit.sessions.lock(session_id))
            requests.check_version(expected_version, before.version)
            before = before._replace(tags=unit.sessions.tags(session_id))
            session = before
            if before.status is not status:
                session = before._replace(status=status, version=before.version + 1, updated_at=self._clock.now())
                unit.sessions.save(before, session)
            return session, _outcome(session)

        return once(self._store, call, mutation, work, replayed_session)


def checked_put(put: SessionPut, limits: Limits) -> SessionPut:
    """Checks what can be checked before any SQL; returns what is to be put, with an id."""
    requests.check_not_negative(put.expected_version, "expected_version")
    metadata = check_metadata(put.metadata, limits, "session.")
    if put.system_prompt is not None:
        check_text(put.system_prompt, "system_prompt", limits.max_slot_bytes)
    if put.session_id:
        check_id(put.session_id, "session.id")
    elif put.expected_version:
        raise InvalidField("session.id is required for an update.", field="session.id")
    return replace(put, session_id=put.session_id or new_id(), metadata=metadata)


def put_in(unit: ContentUnit, put: SessionPut, now: datetime) -> Session:
    """Creates or updates a session by checked values, within a unit."""
    session: Session | None = None
    if put.expected_version != 0:
        session = _update_in(unit, put, now)
    if session is None:
        if put.expected_version:
            raise requests.not_found()
        try:
            session = _create_in(unit, new_session(put.session_id, put.metadata, now, put.origin))
        except SessionExists:
            if put.expected_version == 0:
                raise
            # Another call made it since this one looked.
            session = requests.found(_update_in(unit, put, now))
    if put.system_prompt is not None:
        write_slot_in(unit, SlotWrite(put.session_id, SlotName.SYSTEM_PROMPT, put.system_prompt), now)
    return session


def new_session(session_id: str, metadata: Metadata, now: datetime, origin: str | None = None) -> Session:
    """Returns a session without any history."""
    return Session(
        session_id=session_id,
        origin=origin or new_origin(),
        label=metadata.label or "",
        status=Status.ACTIVE,
        turn_count=0,
        metadata_json=metadata.metadata_json or None,
        head_seq=0,
        floor_seq=0,
        max_record_bytes=0,
        open_groups=None,
        version=1,
        created_at=now,
        updated_at=now,
        last_active_at=now,
        tags=metadata.tags or (),
    )


def _create_in(unit: ContentUnit, session: Session) -> Session:
    unit.sessions.insert(session)
    # Made once and never touched by an append: the span of its own records has no end.
    unit.spans.add(session.origin, [Span(session.origin, session.head_seq + 1)])
    return session


def replayed_session(unit: UnitOfWork, outcome: Outcome) -> Session:
    """Returns the session of a repeated request, with the version that it had after the first."""
    session = requests.found(unit.sessions.get(text_in(outcome, "session_id")))
    return session._replace(version=number_in(outcome, "version"))


def _update_in(unit: ContentUnit, put: SessionPut, now: datetime) -> Session | None:
    locked = unit.sessions.lock(put.session_id)
    if locked is None:
        return None
    before = requests.writable(locked)._replace(tags=unit.sessions.tags(put.session_id))
    requests.check_version(put.expected_version, before.version)
    given = put.metadata
    after = before._replace(
        label=before.label if given.label is None else given.label,
        tags=before.tags if given.tags is None else given.tags,
        metadata_json=before.metadata_json if given.metadata_json is None else given.metadata_json or None,
    )
    if after != before:
        after = after._replace(version=before.version + 1, updated_at=now)
        unit.sessions.save(before, after)
    return after


def _read_light(unit: UnitOfWork, session_ids: Collection[str]) -> Mapping[str, Session]:
    return unit.sessions.get_many(session_ids, longest_metadata=LIGHT_CHARACTERS)


def _outcome(session: Session) -> Outcome:
    return {"session_id": session.session_id, "version": session.version}


def _parts(admits: SessionFilter) -> list[object]:
    times = (admits.created_from, admits.created_before, admits.last_active_from, admits.last_active_before)
    return [admits.status, list(admits.tags), admits.label_prefix, *times]
