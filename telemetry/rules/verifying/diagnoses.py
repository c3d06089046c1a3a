"""Whether each diagnosis adds up, and each row has its diagnosis."""

from collections.abc import Sequence
from dataclasses import fields

from ramet_server.domain.findings import Finding, Flaw, Page, Place
from telemetry.rules.ports import Totals
from telemetry.rules.verifying.ports import Audit, Told

_AT_ONCE = 500

TOTALS = "DIAGNOSIS_TOTALS"
FEEDBACK = "DIAGNOSIS_FEEDBACK"
STEP = "TOOL_STEP"

_NO_TOTALS = Totals()


class DiagnosisCheck:
    """Looks at the diagnoses of one space."""

    def __init__(self, space: str) -> None:
        self._space = space

    def page(self, unit: Audit, after: Place) -> Page[Audit]:
        """Looks at the next diagnoses."""
        found = unit.diagnoses(after[0] if after else "", _AT_ONCE)
        return Page(self._look(unit, found), (found[-1].session_id,) if len(found) == _AT_ONCE else None)

    def again(self, unit: Audit, finding: Finding) -> Sequence[Flaw[Audit]]:
        """Looks at one diagnosis, locked."""
        told = unit.lock(finding.id)
        return [] if told is None else self._look(unit, [told])

    def _look(self, unit: Audit, diagnoses: Sequence[Told]) -> list[Flaw[Audit]]:
        ids = [each.session_id for each in diagnoses]
        totals, words = unit.totals(ids), unit.feedback(ids)
        flaws: list[Flaw[Audit]] = []
        for told in diagnoses:
            flaws += self._totals(told, totals.get(told.session_id, _NO_TOTALS))
            flaws += self._feedback(told, words.get(told.session_id))
        return flaws

    def _totals(self, told: Told, right: Totals) -> list[Flaw[Audit]]:
        if told.totals == right:
            return []
        wrong = [each.name for each in fields(Totals) if getattr(told.totals, each.name) != getattr(right, each.name)]
        finding = Finding(TOTALS, self._space, told.session_id, _some(told.totals, wrong), _some(right, wrong))
        return [Flaw(finding, lambda unit: unit.save_totals(told.session_id, right))]

    def _feedback(self, told: Told, right: str | None) -> list[Flaw[Audit]]:
        if told.feedback == right:
            return []
        found, expected = f"feedback {told.feedback or 'unset'}", f"{right or 'unset'}, as was said last"
        finding = Finding(FEEDBACK, self._space, told.session_id, found, expected)
        return [Flaw(finding, lambda unit: unit.save_feedback(told.session_id, right))]


class StrayCheck:
    """Looks for rows of a part, in one space, whose diagnosis does not exist."""

    def __init__(self, space: str, code: str, part: str) -> None:
        self._space = space
        self._code = code
        self._part = part

    def page(self, unit: Audit, after: Place) -> Page[Audit]:
        """Looks for the next ones."""
        found = unit.strays(self._part, after[0] if after else "", _AT_ONCE)
        return Page([self._flaw(*each) for each in found], (found[-1][0],) if len(found) == _AT_ONCE else None)

    def again(self, unit: Audit, finding: Finding) -> Sequence[Flaw[Audit]]:
        """Looks for one; where it has a diagnosis by now, nothing is wrong."""
        return [] if unit.lock(finding.id) is not None else [self._flaw(finding.id, 0)]

    def _flaw(self, session_id: str, count: int) -> Flaw[Audit]:
        finding = Finding(self._code, self._space, session_id, f"{count} of no diagnosis", "none")
        return Flaw(finding, lambda unit: unit.delete_strays(self._part, session_id))


class LinkCheck:
    """Looks for tool calls, in one space, that do not have the id of their step."""

    def __init__(self, space: str) -> None:
        self._space = space

    def page(self, unit: Audit, after: Place) -> Page[Audit]:
        """Looks for the next ones."""
        found = unit.unlinked(after[0] if after else "", _AT_ONCE)
        return Page([self._flaw(*each) for each in found], (found[-1][0],) if len(found) == _AT_ONCE else None)

    def again(self, unit: Audit, finding: Finding) -> Sequence[Flaw[Audit]]:
        """Looks at the tool calls of one diagnosis, locked."""
        unit.lock(finding.id)
        count = unit.is_unlinked(finding.id)
        return [self._flaw(finding.id, count)] if count else []

    def _flaw(self, session_id: str, count: int) -> Flaw[Audit]:
        expected = "the id of the step with their step_key, or none"
        finding = Finding(STEP, self._space, session_id, f"{count} tool calls with another step_id", expected)
        return Flaw(finding, lambda unit: unit.link(session_id))


def _some(totals: Totals, names: Sequence[str]) -> str:
    return ", ".join(f"{name} {getattr(totals, name)}" for name in names)
