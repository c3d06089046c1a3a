"""Reads by key of many callers at once: one query for all of a space, whoever they are."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from ramet_server.domain.call import Call
from ramet_server.domain.errors import RametError
from ramet_server.domain.ids import check_id
from ramet_server.domain.sharing import ALONE, Alone
from session_service.rules.ports import Store, UnitOfWork

LIGHT_CHARACTERS = 64 * 1024
"""A longer text is read for its caller alone, so that a group is never too much for memory or for those in it."""

T = TypeVar("T")


def read_together(
    store: Store,
    calls: Sequence[Call],
    session_ids: Sequence[str],
    read: Callable[[UnitOfWork, Collection[str]], Mapping[str, T]],
) -> list[T | RametError | Alone]:
    """Returns for each call what ``read`` finds for its session, or why its id is none.

    Those for whom nothing is found are answered ALONE: whether there is nothing, or too much for a group,
    is seen then. Each sees what was committed when the group began, which is after the call came.
    """
    answers: list[T | RametError | Alone] = [ALONE for _ in calls]
    places: dict[str, list[int]] = {}
    for place, (call, session_id) in enumerate(zip(calls, session_ids, strict=True)):
        try:
            check_id(session_id, "session_id")
        except RametError as error:
            answers[place] = error
        else:
            places.setdefault(call.space, []).append(place)
    for here in places.values():
        found = _read(store, [calls[place] for place in here], {session_ids[place] for place in here}, read)
        for place in here:
            answers[place] = found.get(session_ids[place], ALONE)
    return answers


def _read(
    store: Store,
    calls: Sequence[Call],
    session_ids: Collection[str],
    read: Callable[[UnitOfWork, Collection[str]], Mapping[str, T]],
) -> Mapping[str, T]:
    # The work has a point as long as one of them waits; the others are let go at their own deadlines.
    deadlines = [call.deadline for call in calls if call.deadline is not None]
    deadline = max(deadlines) if len(deadlines) == len(calls) else None
    return store.read(Call(calls[0].space, deadline), lambda unit: read(unit, session_ids))
