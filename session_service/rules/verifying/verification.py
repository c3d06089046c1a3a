"""The service's part of a verification: all checks of its tables, in an order in which mending makes sense."""

from collections.abc import Iterator
from dataclasses import replace

from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.findings import Check, Finding, VerifyStore, carry_out
from session_service.rules.verifying.ports import Audit
from session_service.rules.verifying.standings import StandingCheck
from session_service.rules.verifying.stored import LeftRecords, OwnRecords
from session_service.rules.verifying.strays import MARKS, SLOTS, SPANS, TAGS, OwnerlessCheck, StrangerCheck


class VerifyRules:
    """Looks at sessions and their records; the space of a call has no meaning where all spaces are meant."""

    def __init__(self, store: VerifyStore[Audit], clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def space_after(self, call: Call, space: str) -> str | None:
        """Returns the next space, by name, that has rows of this service."""
        return self._store.snapshot(call, lambda unit: unit.space_after(space))

    def in_space(self, call: Call, space: str, *, alone: bool, repair: bool) -> Iterator[Finding]:
        """Yields what is wrong in one space; ``alone``: nobody looks at what belongs to no space afterwards."""
        within = replace(call, space=space)
        checks: list[Check[Audit]] = [
            StrangerCheck(space, TAGS, "session_tag"),
            StrangerCheck(space, SLOTS, "context_slot"),
            StandingCheck(space),
            OwnRecords(space, self._clock, with_foreign=alone),
        ]
        for check in checks:
            yield from carry_out(self._store, within, check, repair=repair)

    def in_no_space(self, call: Call, *, repair: bool) -> Iterator[Finding]:
        """Yields what is wrong with what belongs to no space."""
        checks: list[Check[Audit]] = [
            OwnerlessCheck(SPANS, "history_span", self._clock),
            OwnerlessCheck(MARKS, "broken_group", self._clock),
            LeftRecords(self._clock),
        ]
        for check in checks:
            yield from carry_out(self._store, call, check, repair=repair)
