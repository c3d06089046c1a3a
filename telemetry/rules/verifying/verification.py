"""The service's part of a verification: all checks of its tables, in an order in which mending makes sense."""

from collections.abc import Iterator
from dataclasses import replace

from ramet_server.domain.call import Call
from ramet_server.domain.findings import Check, Finding, VerifyStore, carry_out
from telemetry.rules.verifying.diagnoses import DiagnosisCheck, LinkCheck, StrayCheck
from telemetry.rules.verifying.ports import PARTS, Audit


class VerifyRules:
    """Looks at the diagnoses, one space after the other."""

    def __init__(self, store: VerifyStore[Audit]) -> None:
        self._store = store

    def space_after(self, call: Call, space: str) -> str | None:
        """Returns the next space, by name, that has rows of this service."""
        return self._store.snapshot(call, lambda unit: unit.space_after(space))

    def in_space(self, call: Call, space: str, *, repair: bool) -> Iterator[Finding]:
        """Yields what is wrong in one space."""
        within = replace(call, space=space)
        checks: list[Check[Audit]] = [StrayCheck(space, *part) for part in PARTS]
        checks += [LinkCheck(space), DiagnosisCheck(space)]
        for check in checks:
            yield from carry_out(self._store, within, check, repair=repair)
