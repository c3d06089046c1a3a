"""Mutations of many callers in one transaction: they share its commit, and nothing else.

Each member's checks decide its own fate only. A member for whom the common transaction is not the
place (its request_id may have been used before, its row is held by somebody else, the transaction
failed) is told to run alone, by ``once``, which knows how to answer it. So whatever goes wrong for all
costs time, and never correctness.
"""

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ramet_server.domain.call import Call
from ramet_server.domain.errors import (
    Cancelled,
    DeadlinePassed,
    Exhausted,
    OutcomeUnknown,
    RametError,
    Unavailable,
)
from ramet_server.domain.idempotency import Mutation, Outcome


class Alone(Enum):
    """What is told in place of a result."""

    ALONE = auto()
    """Nothing is known to be done; the member must run in a transaction of its own."""


ALONE = Alone.ALONE

T = TypeVar("T")
U = TypeVar("U")


class Member(NamedTuple, Generic[U, T]):
    """One caller's part of a common transaction."""

    call: Call
    mutation: Mutation
    row: str
    """The id of the row, in the call's space, that ``work`` locks."""
    work: Callable[[U], tuple[T, Outcome]]
    """Returns its result and what to remember of it, as for ``once``; may run more than once."""


class SharingStore(Protocol[U]):
    """Runs members in one transaction."""

    def write_together(self, members: Sequence[Member[U, T]]) -> list[T | RametError | Alone]:
        """Runs the work of all in order and commits; returns for each its result, or why it took no part.

        Waits for no lock that another transaction holds. Raises where nothing was committed for anyone,
        and OutcomeUnknown where that is not known.
        """
        ...


def together(store: SharingStore[U], members: Sequence[Member[U, T]]) -> list[T | RametError | Alone]:
    """Runs members in one transaction; returns for each its result, its error, or ALONE."""
    try:
        answers = store.write_together(members)
    except OutcomeUnknown as error:
        # Alone, the log decides for each whether the lost commit took effect.
        return [ALONE if member.mutation.request_id is not None else error for member in members]
    except (Unavailable, Exhausted) as error:
        return [error for _ in members]
    except RametError:
        # What stood in the way of all may come from one of them.
        return [ALONE for _ in members]
    return [_final(member, answer) for member, answer in zip(members, answers, strict=True)]


def _final(member: Member[Any, Any], answer: T | RametError | Alone) -> T | RametError | Alone:
    if not isinstance(answer, RametError) or isinstance(answer, (Cancelled, DeadlinePassed)):
        return answer
    # The first run of this very request may be what stands in the way, so the log has the last word.
    return answer if member.mutation.request_id is None else ALONE
