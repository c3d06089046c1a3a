"""Deleting sessions, by wish and for the tree."""

from datetime import datetime

from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.idempotency import Mutation, Outcome, once
from ramet_server.domain.ids import check_id
from session_service.rules import requests, spans
from session_service.rules.erasure import ErasureRules, release_in
from session_service.rules.ports import Store, UnitOfWork
from session_service.rules.spans import Released
from session_service.rules.values import Session


class DeletionRules:
    """The rules of deleting."""

    def __init__(self, store: Store, clock: Clock, erasure: ErasureRules) -> None:
        self._store = store
        self._clock = clock
        self._erasure = erasure

    def delete(self, call: Call, mutation: Mutation, session_id: str, expected_version: int | None) -> None:
        """Deletes a session, archived or not; records that a fork shows stay for the fork."""
        requests.check_mutation(mutation)
        check_id(session_id, "session_id")
        requests.check_not_negative(expected_version, "expected_version")
        released: list[Released] = []

        def work(unit: UnitOfWork) -> tuple[None, Outcome]:
            session = requests.found(unit.sessions.lock(session_id))
            requests.check_version(expected_version, session.version)
            released[:] = delete_in(unit, session, self._clock.now())
            return None, {}

        def replay(_unit: UnitOfWork, _outcome: Outcome) -> None:
            released.clear()

        once(self._store, call, mutation, work, replay)
        self._erasure.sweep_released(call, released)

    def delete_incarnation(self, call: Call, session_id: str, origin: str) -> bool:
        """Deletes a session if it is still the one that began as ``origin``; tells whether it did."""

        def work(unit: UnitOfWork) -> list[Released] | None:
            session = unit.sessions.lock(session_id)
            if session is None or session.origin != origin:
                return None
            return delete_in(unit, session, self._clock.now())

        released = self._store.write(call, work)
        self._erasure.sweep_released(call, released or ())
        return released is not None


def delete_in(unit: UnitOfWork, session: Session, now: datetime) -> list[Released]:
    """Deletes a locked session within a unit; returns what was released, to be swept after the commit."""
    shown = spans.clip(unit.spans.of(session.origin), session.floor_seq + 1, session.head_seq)
    released = release_in(unit, session.origin, shown, now)
    unit.spans.delete(session.origin)
    unit.marks.remove(session.origin, 0, spans.OPEN_END)
    unit.slots.delete(session.session_id)
    unit.sessions.delete(session)
    unit.sessions.note_deleted(session.session_id, now)
    return released
