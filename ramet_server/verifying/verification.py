"""One look at everything, space by space, beside servers that go on writing.

Each page of it is one consistent state, so nothing that is under way looks wrong; what is told was so at
one moment. Memory does not grow with the database.
"""

from collections.abc import Iterator
from dataclasses import replace

import session_service
import telemetry
import tree_service
from ramet_server.database.database import Database
from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.findings import Finding, Outcome
from ramet_server.domain.limits import Limits


class Verification:
    """Looks at one database; it blocks, and belongs on a thread of its own."""

    def __init__(self, database: Database, limits: Limits, clock: Clock) -> None:
        self._session = session_service.build_verify(database, clock)
        self._tree = tree_service.build_verify(database, limits, clock)
        self._telemetry = telemetry.build_verify(database)
        self._deletions = session_service.build_sweep(database, limits, clock)
        self._removals = tree_service.build_sweep(database, limits, clock)

    def run(self, call: Call, *, space: str | None = None, repair: bool = False) -> Iterator[Finding]:
        """Yields what is wrong, in one space or (None) everywhere; the space of the call has no meaning.

        With ``repair`` it mends what is safe to mend before it tells of it.
        """
        if space is not None:
            yield from self._in_space(call, space, alone=True, repair=repair)
            return
        for each in self._spaces(call):
            yield from self._in_space(call, each, alone=False, repair=repair)
        yield from self._session.in_no_space(call, repair=repair)

    def _spaces(self, call: Call) -> Iterator[str]:
        space: str | None = ""
        while space is not None:
            following = [part.space_after(call, space) for part in (self._session, self._tree, self._telemetry)]
            space = min((each for each in following if each is not None), default=None)
            if space is not None:
                yield space

    def _in_space(self, call: Call, space: str, *, alone: bool, repair: bool) -> Iterator[Finding]:
        yield from self._session.in_space(call, space, alone=alone, repair=repair)
        yield from self._tree.in_space(call, space, repair=repair)
        yield from self._unfinished(call, space, repair=repair)
        yield from self._telemetry.in_space(call, space, repair=repair)

    def _unfinished(self, call: Call, space: str, *, repair: bool) -> Iterator[Finding]:
        """Sessions that should have gone with their nodes; mending does what the sweep would do."""
        within = replace(call, space=space)
        for finding, removal in self._tree.unfinished(call, space):
            if repair:
                self._deletions.delete_incarnation(within, removal.session_id, removal.origin)
                self._removals.finish_removal(within, removal)
            yield replace(finding, outcome=Outcome.MENDED) if repair else finding
