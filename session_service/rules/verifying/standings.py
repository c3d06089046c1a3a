"""Whether each session's head, floor and spans fit together."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from ramet_server.domain.findings import Finding, Flaw, Page, Place
from session_service.rules import spans, tool_groups
from session_service.rules.spans import OPEN_END, Span
from session_service.rules.tool_groups import Tracker
from session_service.rules.verifying.ports import Audit, Standing

_AT_ONCE = 100

SPANS = "SESSION_SPANS"
OPEN_SPAN = "SESSION_OPEN_SPAN"
HEAD = "SESSION_HEAD"
FLOOR = "SESSION_FLOOR"
GROUPS = "SESSION_GROUPS"
MARKS = "SESSION_MARKS"


class StandingCheck:
    """Looks at the sessions of one space."""

    def __init__(self, space: str) -> None:
        self._space = space

    def page(self, unit: Audit, after: Place) -> Page[Audit]:
        """Looks at the next sessions."""
        found = unit.sessions(after[0] if after else "", _AT_ONCE)
        flaws = [flaw for each in found for flaw in self._look(each)]
        return Page(flaws, (found[-1].session_id,) if found else None)

    def again(self, unit: Audit, finding: Finding) -> Sequence[Flaw[Audit]]:
        """Looks at one session, locked."""
        standing = unit.lock_session(finding.id)
        return [] if standing is None else self._look(standing)

    def _look(self, standing: Standing) -> list[Flaw[Audit]]:
        disorder = disorder_of(standing.spans)
        if disorder:
            expected = "spans that ascend and do not overlap"
            why = "which of the spans is right cannot be known"
            return [Flaw(self._finding(SPANS, standing, disorder, expected), None, why)]
        open_spans = [span for span in standing.spans if span.last_seq == OPEN_END]
        if [span.origin for span in open_spans] != [standing.origin]:
            return [self._without_open_span(standing, open_spans)]
        flaws: list[Flaw[Audit]] = []
        *closed, growing = standing.spans
        least_head = max(growing.first_seq - 1, standing.last_own_seq, closed[-1].last_seq if closed else 0)
        if standing.head_seq < least_head:
            finding = self._finding(HEAD, standing, f"head_seq {standing.head_seq}", f"{least_head} or more")
            flaws.append(Flaw(finding, lambda unit: unit.set_head(standing.session_id, least_head)))
        most_floor = standing.spans[0].first_seq - 1
        if standing.floor_seq > most_floor:
            finding = self._finding(FLOOR, standing, f"floor_seq {standing.floor_seq}", f"{most_floor} or less")
            # Nothing is lost by it: what a trim drops, it drops from the spans as well.
            flaws.append(Flaw(finding, lambda unit: unit.set_floor(standing.session_id, most_floor)))
        # What is shown is known only where head and floor are right.
        return flaws or self._groups(standing)

    def _groups(self, standing: Standing) -> list[Flaw[Audit]]:
        shown = spans.clip(standing.spans, standing.floor_seq + 1, standing.head_seq)
        flaws: list[Flaw[Audit]] = []
        hidden = [seq for seq in _group_seqs(standing.open_groups) if spans.shows(shown, seq) is None]
        if hidden:
            found = f"open tool-call groups with {len(hidden)} records that it does not show"
            finding = self._finding(GROUPS, standing, found, "groups of its last records")
            flaws.append(Flaw(finding, lambda unit: unit.forget_groups(standing.session_id)))
        stray = [seq for seq in standing.marks if spans.shows(shown, seq) is None]
        if stray:
            found = f"{len(stray)} marks of records that it does not show, the first at {stray[0]}"
            finding = self._finding(MARKS, standing, found, "none")
            flaws.append(Flaw(finding, lambda unit: unit.unmark(standing.origin, stray)))
        return flaws

    def _without_open_span(self, standing: Standing, open_spans: Sequence[Span]) -> Flaw[Audit]:
        told = ", ".join(f"{span.origin} from {span.first_seq}" for span in open_spans) or "none"
        finding = self._finding(OPEN_SPAN, standing, f"open spans: {told}", "one, its own, the last")
        if open_spans:
            return Flaw(finding, None, "which of the spans is right cannot be known")
        begin = max(standing.spans[-1].last_seq if standing.spans else 0, standing.floor_seq) + 1
        return Flaw(finding, partial(_open_anew, standing, begin))

    def _finding(self, code: str, standing: Standing, found: str, expected: str) -> Finding:
        return Finding(code, self._space, standing.session_id, found, expected)


def _group_seqs(text: str | None) -> list[int]:
    """Returns the records of open groups; a seq that no session has where the text cannot be read."""
    try:
        tracker = Tracker.decode(text)
    except (ValueError, TypeError):
        return [0]
    return [] if tracker is None else sorted(tool_groups.incomplete_seqs(tracker.pending()))


def disorder_of(history: Sequence[Span]) -> str:
    """Tells what is wrong with the order of spans; empty where nothing is."""
    for span in history:
        if span.last_seq < span.first_seq:
            return f"a span from {span.first_seq} to {span.last_seq}"
    for one, other in pairwise(history):
        if other.first_seq <= one.last_seq:
            return f"a span from {one.first_seq} to {one.last_seq}, the next from {other.first_seq}"
    return ""


def _open_anew(standing: Standing, begin: int, unit: Audit) -> None:
    """Gives a session its own span again, over those of its own records that no other span shows."""
    first = begin
    if standing.last_own_seq >= begin:
        # The last run of records without a gap: what lies before it was dropped, and may be noted for the sweep.
        first = _run_begins_at(unit, standing.origin, begin, standing.last_own_seq)
    elif standing.head_seq >= begin:
        first = standing.head_seq + 1
    unit.add_span(standing.origin, Span(standing.origin, first))


def _run_begins_at(unit: Audit, origin: str, begin: int, end: int) -> int:
    low, high = begin, end
    while low < high:
        middle = (low + high) // 2
        if unit.count(origin, (middle, end)) == end - middle + 1:
            high = middle
        else:
            low = middle + 1
    return low
