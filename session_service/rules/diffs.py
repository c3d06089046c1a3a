"""Comparing two sessions by their spans, without reading a record."""

from dataclasses import dataclass

from ramet_server.domain.call import Call
from ramet_server.domain.errors import SessionNotFound
from ramet_server.domain.ids import check_id
from session_service.rules import spans
from session_service.rules.ports import Store, UnitOfWork
from session_service.rules.spans import Span
from session_service.rules.values import View


@dataclass(frozen=True, slots=True)
class Side:
    """Where one side stands."""

    first_own_seq: int
    head_seq: int
    floor_seq: int


@dataclass(frozen=True, slots=True)
class Diff:
    """How far two sessions show the very same records."""

    common_through_seq: int
    left: Side
    right: Side


class DiffRules:
    """The rules of comparing."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def compare(self, call: Call, left_id: str, right_id: str) -> Diff:
        """Compares two sessions as of one moment."""
        check_id(left_id, "left_session_id")
        check_id(right_id, "right_session_id")

        def read(unit: UnitOfWork) -> Diff:
            left, left_shown = _history(unit, left_id, "left_session_id")
            right, right_shown = _history(unit, right_id, "right_session_id")
            # What one side alone has trimmed away says nothing of where they part.
            floor = max(left.floor_seq, right.floor_seq)
            lefts = spans.clip(left_shown, floor + 1, spans.OPEN_END)
            rights = spans.clip(right_shown, floor + 1, spans.OPEN_END)
            common = spans.common_through(lefts, rights)
            return Diff(
                common,
                Side(spans.first_own(lefts, rights, common), left.head_seq, left.floor_seq),
                Side(spans.first_own(rights, lefts, common), right.head_seq, right.floor_seq),
            )

        return self._store.snapshot(call, read)


def _history(unit: UnitOfWork, session_id: str, field: str) -> tuple[View, list[Span]]:
    found = unit.sessions.view(session_id, 0, spans.OPEN_END, descending=False, limit=None)
    if found is None:
        raise SessionNotFound("No session has this id.", field=field)
    view, stored = found
    return view, spans.clip(stored, view.floor_seq + 1, view.head_seq)
