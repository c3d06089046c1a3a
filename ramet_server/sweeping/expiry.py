"""Sessions that nobody writes to for long go, each with its node.

A node goes only when everything below it in the tree went before, so that a live descendant keeps its
place, and so does every node without a session. Session and node go in one transaction, under the locks
of both lines: no reader sees one without the other, and one that is written to meanwhile stays.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy import Connection

import session_service
import tree_service
from ramet_server.database.database import Database
from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.limits import Limits
from session_service.rules.expiry import Idle, count_freed, take_idle
from session_service.store.ages import SqlIdleSessions
from tree_service.rules.expiry import Kept, going, lock_leaf, take_leaf
from tree_service.store.places import SqlPlaces

_AT_ONCE = 100


@dataclass(frozen=True)
class Aged:
    """What is to go of one space by age, counted."""

    space_id: str
    sessions: int
    nodes: int
    records: int
    """Those that no other session shows."""


@dataclass(frozen=True)
class _Place:
    """How far a pass came."""

    space: str = ""
    after: Idle | None = None


class SessionExpiry:
    """Takes old sessions, a page of candidates at a time; it remembers how far its pass came."""

    def __init__(self, database: Database, limits: Limits, clock: Clock) -> None:
        self._database = database
        self._limits = limits
        self._clock = clock
        self._sessions = session_service.joining_units(clock, limits)
        self._forest = tree_service.joining_units(clock, limits)
        self._place = _Place()

    def some(self, call: Call) -> tuple[int, int, bool]:
        """Looks at some candidates; returns how many sessions and nodes went, and whether the pass goes on."""
        if not self._limits.session_age.expires:
            return 0, 0, False
        place = self._place
        if not self._days(place.space):
            place = _Place(self._space_after(call, place.space) or "")
            self._place = place
            return 0, 0, bool(place.space)
        within, before = replace(call, space=place.space), self._before(place.space)
        found = self._database.read(
            within, lambda connection: SqlIdleSessions(connection, place.space).idle(before, place.after, _AT_ONCE)
        )
        sessions = nodes = 0
        for session_id in self._leaves(within, found):
            for with_node in self._upwards(within, session_id, before):
                sessions += 1
                nodes += with_node
        if len(found) == _AT_ONCE:
            self._place = _Place(place.space, found[-1])
        else:
            self._place = _Place(self._space_after(call, place.space) or "")
        return sessions, nodes, bool(self._place.space)

    def foretell(self, call: Call) -> list[Aged]:
        """Counts what a pass would take, by space, and changes nothing."""
        told = []
        space = self._space_after(call, "") if self._limits.session_age.expires else None
        while space is not None:
            if self._days(space):
                told.append(self._foretell(replace(call, space=space)))
            space = self._space_after(call, space)
        return [each for each in told if each.sessions]

    def _upwards(self, call: Call, session_id: str, before: datetime) -> Iterator[bool]:
        """Takes a session, and as many of those above it as are old too; yields for each whether it had a node."""
        next_id: str | None = session_id
        while next_id is not None:
            taken = self._take(call, next_id, before)
            if taken is None:
                return
            with_node, next_id = taken
            yield with_node

    def _take(self, call: Call, session_id: str, before: datetime) -> tuple[bool, str | None] | None:
        """Takes one session with its node; returns whether it had one, and the parent. None where it stays."""

        def work(connection: Connection) -> tuple[bool, str | None] | None:
            now = self._clock.now()
            forest, sessions = self._forest(connection, call.space), self._sessions(connection, call.space)
            # First the tree's lock, then the session's: nobody else holds both.
            node = lock_leaf(forest, session_id)
            if not take_idle(sessions, SqlIdleSessions(connection, call.space), session_id, before, now):
                return None
            return (False, None) if node is None else (True, take_leaf(forest, node, now))

        try:
            return self._database.write(call, work)
        except Kept:
            return None

    def _leaves(self, call: Call, found: list[Idle]) -> list[str]:
        """Returns those that nothing stands below; looked at again when they are taken."""
        ids = [each.session_id for each in found]
        if not ids:
            return []
        places = self._database.read(call, lambda connection: SqlPlaces(connection, call.space).depths(ids))
        return [each for each in ids if each not in places or not places[each][1]]

    def _foretell(self, call: Call) -> Aged:
        before = self._before(call.space)

        def look(connection: Connection) -> Aged:
            ages, origins = SqlIdleSessions(connection, call.space), dict[str, str]()
            after: Idle | None = None
            while found := ages.idle(before, after, _AT_ONCE):
                after = found[-1]
                origins |= {each.session_id: each.origin for each in found}
            left, nodes = going(SqlPlaces(connection, call.space), origins)
            records = count_freed(ages, {session_id: origins[session_id] for session_id in left})
            return Aged(call.space, len(left), nodes, records)

        return self._database.read(call, look, snapshot=True)

    def _days(self, space: str) -> int:
        return self._limits.session_age.days_in(space) if space else 0

    def _before(self, space: str) -> datetime:
        return self._clock.now() - timedelta(days=self._days(space))

    def _space_after(self, call: Call, space: str) -> str | None:
        return self._database.read(call, lambda connection: SqlIdleSessions(connection, "").space_after(space))
