"""The service's part of a verification: all checks of its tables, in an order in which mending makes sense."""

from collections.abc import Iterator
from dataclasses import replace

from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.findings import Check, Finding, VerifyStore, carry_out
from ramet_server.domain.limits import Limits
from tree_service.rules.values import SessionRemoval
from tree_service.rules.verifying.links import RefCheck, RemovalCheck, RootCheck
from tree_service.rules.verifying.nodes import NodeCheck
from tree_service.rules.verifying.ports import Audit


class VerifyRules:
    """Looks at the forests, one space after the other."""

    def __init__(self, store: VerifyStore[Audit], limits: Limits, clock: Clock) -> None:
        self._store = store
        self._limits = limits
        self._clock = clock

    def space_after(self, call: Call, space: str) -> str | None:
        """Returns the next space, by name, that has rows of this service."""
        return self._store.snapshot(call, lambda unit: unit.space_after(space))

    def in_space(self, call: Call, space: str, *, repair: bool) -> Iterator[Finding]:
        """Yields what is wrong in one space."""
        within = replace(call, space=space)
        checks: list[Check[Audit]] = [
            RootCheck(space, self._clock),
            NodeCheck(space, self._limits, self._clock),
            RefCheck(space),
        ]
        for check in checks:
            yield from carry_out(self._store, within, check, repair=repair)

    def unfinished(self, call: Call, space: str) -> Iterator[tuple[Finding, SessionRemoval]]:
        """Yields sessions of one space that should long have gone with their nodes."""
        within = replace(call, space=space)
        check = RemovalCheck(space, self._clock)
        after: str | None = ""
        while after is not None:
            position = after
            told, after = self._store.snapshot(within, lambda unit: check.unfinished(unit, position))  # noqa: B023 - run at once
            yield from told
