"""Mutations that take effect once, however often their request arrives.

A request that carries a request_id writes one log row in the very transaction of its change, as the
last statement. The unique key of that row decides every race: of two requests with the same id only
one commits, and the other, rolled back whole, is answered from the first one's row.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from ramet_server.domain.call import Call
from ramet_server.domain.errors import (
    Cancelled,
    DatabaseUnavailable,
    DeadlinePassed,
    Exhausted,
    OutcomeUnknown,
    RametError,
    RequestIdReused,
    Unavailable,
    WriteConflict,
)

Outcome = Mapping[str, int | str | Sequence[int | str] | None]
"""What a repeated request is answered from: ids, seqs, versions and counts, never content."""

_ATTEMPTS = 3

T = TypeVar("T")


class Mutation(NamedTuple):
    """A request that changes something, by what tells it from others."""

    request_id: str | None
    """The client's id for it; None where the client gave none."""
    method: str
    """The method's name, for people who read the log."""
    body_hash: str
    """What two requests share if they ask for the same; see ``body_hash``."""


def body_hash(method: str, body: bytes) -> str:
    """Returns the hash of a request: of its method and its body, serialized without the request_id."""
    return hashlib.sha256(method.encode("utf-8") + b"\0" + body).hexdigest()


@dataclass(frozen=True)
class LoggedRequest:
    """A request that took effect before."""

    method: str
    body_hash: str
    outcome: Outcome


class DuplicateRequest(Exception):
    """Tells ``once`` that another request with this id was committed; it never reaches a client."""


class RequestLog(Protocol):
    """The requests of one service in one space, within the unit of work it was taken from."""

    def find(self, request_id: str) -> LoggedRequest | None:
        """Returns the request if it took effect and is still remembered."""
        ...

    def put(self, mutation: Mutation, outcome: Outcome) -> None:
        """Remembers the mutation; raises DuplicateRequest where its id is remembered already.

        Waits for another open transaction with the same id. Without a request_id nothing is done.
        """
        ...


class Unit(Protocol):
    """The part of a unit of work that idempotency needs."""

    @property
    def requests(self) -> RequestLog:
        """The log that commits and rolls back with this unit."""
        ...


U = TypeVar("U", bound=Unit)
U_co = TypeVar("U_co", bound=Unit, covariant=True)


class Store(Protocol[U_co]):
    """Runs functions in units of work."""

    def read(self, call: Call, fn: Callable[[U_co], T]) -> T:
        """Runs ``fn`` over what is committed; it changes nothing."""
        ...

    def write(self, call: Call, fn: Callable[[U_co], T]) -> T:
        """Runs ``fn`` and commits; ``fn`` may run more than once, and only its last run counts."""
        ...


def once(
    store: Store[U],
    call: Call,
    mutation: Mutation,
    work: Callable[[U], tuple[T, Outcome]],
    replay: Callable[[U, Outcome], T],
) -> T:
    """Runs ``work`` in one transaction, or answers by ``replay`` where it took effect before.

    ``work`` returns its result and what to remember of it. A first request never looks the log up.
    Raises RequestIdReused where the id was used with another body, and what ``work`` raises.
    """

    def attempt(unit: U) -> T:
        result, outcome = work(unit)
        # Last, so that the wait for a twin's key is short and holds as few locks as possible.
        unit.requests.put(mutation, outcome)
        return result

    unknown: OutcomeUnknown | None = None
    for _ in range(_ATTEMPTS):
        try:
            return store.write(call, attempt)
        except OutcomeUnknown as error:
            if mutation.request_id is None:
                raise
            # Running again is safe: if the lost commit took effect, its row stops this one.
            unknown = error
            continue
        except DuplicateRequest:
            error_met: RametError | None = None
        except (Unavailable, Exhausted, DeadlinePassed, Cancelled) as error:
            if unknown is not None and isinstance(error, DatabaseUnavailable):
                raise unknown from error
            raise
        except RametError as error:
            if mutation.request_id is None:
                raise
            # The first run of this very request may be what stands in the way (a moved head, an id
            # that exists now), so the log has the last word.
            error_met = error
        answer = store.read(call, lambda unit: _answer(unit, mutation, replay))
        if answer is not None:
            return answer[0]
        if error_met is not None:
            if unknown is not None and isinstance(error_met, WriteConflict):
                # What stood in the way may be the lost commit itself, still under way.
                raise unknown from error_met
            raise error_met
        # The row that stopped this run has expired since; the request is new again.
    if unknown is not None:
        raise unknown
    raise WriteConflict("The request kept meeting another one with the same request_id.")


def _answer(unit: U, mutation: Mutation, replay: Callable[[U, Outcome], T]) -> tuple[T] | None:
    """Returns the replayed result, in a tuple because it may itself be None; None where nothing is logged."""
    logged = unit.requests.find(mutation.request_id) if mutation.request_id is not None else None
    if logged is None:
        return None
    if logged.body_hash != mutation.body_hash:
        raise RequestIdReused("The request_id was used before with another body.", field="request_id")
    return (replay(unit, logged.outcome),)
