"""Transactions over the content of sessions: optimistic, so that nothing is held while a client thinks.

Each step is answered at once, over what is committed and the transaction's own writes, which stay in
memory. The commit locks every session that was seen, checks that all answers still hold, and only then
does the writes: all of them in one unit of work.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime

from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.errors import RequestIdReused, too_large
from ramet_server.domain.idempotency import Mutation, Outcome, body_hash, once
from ramet_server.domain.ids import check_id, new_id
from ramet_server.domain.limits import Limits
from session_service.rules.erasure import ErasureRules
from session_service.rules.outcomes import text_in
from session_service.rules.own_writes import OwnUnit, OwnWrites
from session_service.rules.ports import Store, UnitOfWork
from session_service.rules.records import RecordPage
from session_service.rules.seen import Seen
from session_service.rules.spans import Released
from session_service.rules.transaction_room import Room, Share
from session_service.rules.transaction_steps import Answer, Done, Step
from session_service.rules.values import Session

_OPEN_BYTES = 16 * 1024
"""What an open transaction counts before its first step."""

_OBJECT_BYTES = 256
"""What a step, a record, a tool call or a tag takes in memory beside its text, about."""
_METHOD = "Transact"


@dataclass(frozen=True, slots=True)
class _Written:
    step: Step
    now: datetime
    answer: Answer | None


class TransactionRules:
    """The rules of transactions."""

    def __init__(self, store: Store, limits: Limits, clock: Clock, erasure: ErasureRules) -> None:
        self._store = store
        self._limits = limits
        self._clock = clock
        self._erasure = erasure
        self._room = Room(limits.max_open_transaction_bytes)

    def open(self) -> "Transaction":
        """Returns a new transaction, to be closed whatever comes of it; raises Overloaded where too much is open."""
        share = Share(self._room)
        share.take(_OPEN_BYTES)
        return Transaction(self._store, self._limits, self._clock, self._erasure, share)


class Transaction:
    """One open transaction. Its methods run one after another, on any threads; ``close`` may come at any moment."""

    def __init__(self, store: Store, limits: Limits, clock: Clock, erasure: ErasureRules, share: Share) -> None:
        self._store = store
        self._limits = limits
        self._clock = clock
        self._erasure = erasure
        self._share = share
        self._operations = 0
        self._bytes = 0
        self.transaction_id = new_id()
        """Tells its own commit from that of another stream under the same request_id."""
        self._request_id = ""
        self._body = hashlib.sha256()
        self._seen = Seen()
        self._own: dict[str, OwnWrites] = {}
        self._written: list[_Written] = []

    def begin(self, call: Call, request_id: str) -> str:
        """Takes the transaction's id; returns that of the stream that was committed under it before, or nothing."""
        self._request_id = check_id(request_id, "request_id")
        logged = self._store.read(call, lambda unit: unit.requests.find(request_id))
        if logged is None:
            return ""
        if logged.method != _METHOD:
            raise RequestIdReused("The request_id was used before with another body.", field="request_id")
        return text_in(logged.outcome, "transaction_id")

    def check_size(self, size: int) -> None:
        """Checks whether a step of so many bytes still fits, before anything is made of it."""
        if self._bytes + size > self._limits.max_transaction_bytes:
            raise too_large("The transaction", self._limits.max_transaction_bytes, "bytes")

    def run(self, call: Call, step: Step, size: int, body: bytes) -> Answer | None:
        """Answers a step of a size in bytes; None where a read finds no session. ``body`` tells it from others.

        Raises TooLarge over a limit.
        """
        self._operations += 1
        if self._operations > self._limits.max_transaction_operations:
            raise too_large("The transaction", self._limits.max_transaction_operations, "operations")
        size += _OBJECT_BYTES * (1 + step.objects)
        self.check_size(size)
        self._bytes += size
        self._share.take(size)
        # The same moment at the commit, so that the times which a step was answered with are those that are kept.
        now = self._clock.now()

        def answer(unit: UnitOfWork) -> tuple[Session | None, OwnWrites, Done]:
            row = unit.sessions.get(step.session_id)
            self._seen.look(unit, row, step)
            own = self._own.get(step.session_id, OwnWrites())
            # A copy, since this may run again where a connection is lost.
            own = own.copy() if step.writes else own
            return row, own, step.run(OwnUnit(unit, row, own), now)

        row, own, done = self._store.snapshot(call, answer)
        if step.writes:
            self._own[step.session_id] = own
            self._written.append(_Written(step, now, done.answer))
            self._body.update(len(body).to_bytes(8, "big") + body)
        if row is not None and isinstance(done.answer, RecordPage):
            self._seen.note_page(row, done.answer)
        return done.answer

    def commit(self, call: Call) -> str:
        """Applies all writes if every answer still holds; raises TransactionConflict where one does not.

        Returns the id of the stream whose writes are applied: another's, where it committed the same under the same
        request_id before. With other writes it is refused.
        """
        if not self._written:
            self._store.snapshot(call, self._seen.check)
            return self.transaction_id
        mutation = Mutation(self._request_id, _METHOD, body_hash(_METHOD, self._body.digest()))
        sessions = {written.step.session_id for written in self._written}
        released: list[Released] = []

        def work(unit: UnitOfWork) -> tuple[str, Outcome]:
            released.clear()
            self._seen.hold(unit, sessions, self._clock.now())
            for written in self._written:
                done = written.step.run(unit, written.now)
                if done.answer != written.answer:
                    raise AssertionError("A step does the same again over the state that it was answered from.")
                released.extend(done.released)
            return self.transaction_id, {"transaction_id": self.transaction_id}

        def replay(_: UnitOfWork, outcome: Outcome) -> str:
            # Its own, where the connection was lost in COMMIT; then what that released is swept all the same.
            return text_in(outcome, "transaction_id")

        committed = once(self._store, call, mutation, work, replay)
        self._erasure.sweep_released(call, released if committed == self.transaction_id else ())
        return committed

    def close(self) -> None:
        """Gives back what the transaction takes of the server."""
        self._share.close()
