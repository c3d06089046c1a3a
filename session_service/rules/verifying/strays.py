"""Whether everything that belongs to a session has one."""

from collections.abc import Sequence
from functools import partial

from ramet_server.domain.clock import Clock
from ramet_server.domain.findings import Finding, Flaw, Page, Place
from session_service.rules.spans import OPEN_END, Span, clip
from session_service.rules.verifying.ports import Audit, Tally

_AT_ONCE = 500

TAGS = "TAG_STRAY"
SLOTS = "SLOT_STRAY"
SPANS = "SPAN_STRAY"
MARKS = "MARK_STRAY"


class StrangerCheck:
    """Looks for tags or slots, in one space, of sessions that do not exist."""

    def __init__(self, space: str, code: str, part: str) -> None:
        self._space = space
        self._code = code
        self._part = part

    def page(self, unit: Audit, after: Place) -> Page[Audit]:
        """Looks for the next ones."""
        found = unit.strangers(self._part, after[0] if after else "", _AT_ONCE)
        return Page([self._flaw(*each) for each in found], (found[-1][0],) if len(found) == _AT_ONCE else None)

    def again(self, unit: Audit, finding: Finding) -> Sequence[Flaw[Audit]]:
        """Looks at one session's; where there is one by now, nothing is wrong."""
        if unit.lock_session(finding.id) is not None:
            return []
        return [self._flaw(finding.id, 0)]

    def _flaw(self, session_id: str, count: int) -> Flaw[Audit]:
        finding = Finding(self._code, self._space, session_id, f"{count} of no session", "none")
        return Flaw(finding, lambda unit: unit.delete_strangers(self._part, session_id))


class OwnerlessCheck:
    """Looks for spans or marks, in all spaces, of origins that are no session's."""

    def __init__(self, code: str, part: str, clock: Clock) -> None:
        self._code = code
        self._part = part
        self._clock = clock

    def page(self, unit: Audit, after: Place) -> Page[Audit]:
        """Looks for the next ones."""
        found = unit.ownerless(self._part, after[0] if after else "", _AT_ONCE)
        return Page([self._flaw(*each) for each in found], (found[-1][0],) if len(found) == _AT_ONCE else None)

    def again(self, unit: Audit, finding: Finding) -> Sequence[Flaw[Audit]]:
        """Looks at one origin's; an origin that is no session's never becomes one's."""
        if unit.lock_origin(finding.id) is not None:
            return []
        return [self._flaw(finding.id, 0)]

    def _flaw(self, origin: str, count: int) -> Flaw[Audit]:
        finding = Finding(self._code, "", origin, f"{count} of no session", "none")
        if self._part == "broken_group":
            return Flaw(finding, lambda unit: unit.delete_marks(origin))
        return Flaw(finding, partial(self._release, origin))

    def _release(self, origin: str, unit: Audit) -> None:
        """Does what deleting the session should have done."""
        end = unit.tallies([origin]).get(origin, Tally()).last_seq
        shown = [
            part
            for span in unit.spans_of(origin)
            for part in clip([span], 0, end if span.last_seq == OPEN_END else OPEN_END)
        ]
        unit.delete_spans(origin)
        unit.release([Span(each.origin, each.first_seq, each.last_seq) for each in shown], self._clock.now())
