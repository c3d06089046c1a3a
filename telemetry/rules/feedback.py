"""What people and models say of a diagnosis, said by a call of its own."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.errors import WriteConflict
from ramet_server.domain.idempotency import Mutation, Outcome, once
from ramet_server.domain.ids import check_id, new_id
from telemetry.rules.absorbing import hear, locked, save
from telemetry.rules.event_checks import EventChecks
from telemetry.rules.merging import evaluation_part, microseconds, moment_of
from telemetry.rules.ports import DiagnosisRow, KeyTaken, Store, UnitOfWork, Word
from telemetry.rules.registers import merge
from telemetry.rules.row_ids import RowIds
from telemetry.rules.values import Feedback, SelfEvaluation

_MICROSECOND = timedelta(microseconds=1)
_ATTEMPTS = 5

T = TypeVar("T")


class FeedbackRules:
    """Sets feedback and self-evaluations; what is said now replaces what was said, whatever a client's clock says."""

    def __init__(self, store: Store, checks: EventChecks, clock: Clock, ids: RowIds) -> None:
        self._store = store
        self._checks = checks
        self._clock = clock
        self._ids = ids

    def put(self, call: Call, mutation: Mutation, session_id: str, said: Feedback) -> Feedback:
        """Sets what one source says of a diagnosis, which need not have come yet."""
        check_id(session_id, "session_id")
        self._checks.feedback(said)

        def work(unit: UnitOfWork) -> tuple[Feedback, Outcome]:
            now = self._clock.now()
            (row,) = self._locked(unit, session_id, now)
            earlier = [word.said_at for word in unit.words.of([session_id]) if word.feedback.source == said.source]
            said_at = max([now, *(moment + _MICROSECOND for moment in earlier)])
            latest = hear(unit, [Word(session_id, said, said_at, new_id())])
            save(unit, [replace(row, feedback=latest[session_id])], now)
            return replace(said, updated_at=said_at), {"updated_at": microseconds(said_at)}

        def replay(_: UnitOfWork, outcome: Outcome) -> Feedback:
            # The body of a repeated request is the same, so only the time is remembered.
            return replace(said, updated_at=_moment(outcome))

        return self._once(call, mutation, work, replay)

    def put_self_evaluation(
        self, call: Call, mutation: Mutation, session_id: str, said: SelfEvaluation
    ) -> SelfEvaluation:
        """Sets what the model says of its own conclusion."""
        check_id(session_id, "session_id")
        self._checks.self_evaluation(said)

        def work(unit: UnitOfWork) -> tuple[SelfEvaluation, Outcome]:
            now = self._clock.now()
            (row,) = self._locked(unit, session_id, now)
            earlier = row.merged.stamps.get("self_evaluation")
            moment = now if earlier is None else max(now, moment_of(earlier.moment_us) + _MICROSECOND)
            merged = merge(row.merged, [evaluation_part(said, moment, new_id())])
            save(unit, [replace(row, merged=merged, last_heard_at=now)], now)
            return said, {}

        return self._once(call, mutation, work, lambda _, __: said)

    def _locked(self, unit: UnitOfWork, session_id: str, now: datetime) -> list[DiagnosisRow]:
        return locked(unit, [session_id], self._ids, now)

    def _once(
        self,
        call: Call,
        mutation: Mutation,
        work: Callable[[UnitOfWork], tuple[T, Outcome]],
        replay: Callable[[UnitOfWork, Outcome], T],
    ) -> T:
        for _ in range(_ATTEMPTS):
            try:
                return once(self._store, call, mutation, work, replay)
            except KeyTaken:
                call.check()
        raise WriteConflict("Other writers stood in the way; try again.")


def _moment(outcome: Outcome) -> datetime:
    value = outcome["updated_at"]
    if not isinstance(value, int):
        raise TypeError("The request log holds no time.")
    return moment_of(value)
