"""The SQL of spans: what each session shows of which records, and what was dropped."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from ramet_server.database.faults import is_duplicate
from ramet_server.database.tables.session import history_span, released_span
from session_service.rules.spans import Span

_IN_LIMIT = 500


class SqlSpans:
    """Spans by owner, and released ones; implements ``rules.ports.Spans``."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def of(self, owner: str) -> list[Span]:
        """Returns the owner's spans in order, the open one last."""
        rows = self._connection.execute(
            select(history_span.c.origin, history_span.c.first_seq, history_span.c.last_seq)
            .where(history_span.c.owner_origin == owner)
            .order_by(history_span.c.first_seq)
        )
        return [Span(row.origin, row.first_seq, row.last_seq) for row in rows]

    def add(self, owner: str, spans: Iterable[Span]) -> None:
        """Stores spans of the owner."""
        rows = [
            {"owner_origin": owner, "first_seq": span.first_seq, "origin": span.origin, "last_seq": span.last_seq}
            for span in spans
        ]
        if rows:
            self._connection.execute(insert(history_span), rows)

    def replace(self, owner: str, before: Sequence[Span], after: Sequence[Span]) -> None:
        """Stores what differs."""
        gone = sorted({span.first_seq for span in set(before) - set(after)})
        for start in range(0, len(gone), _IN_LIMIT):
            self._connection.execute(
                delete(history_span).where(
                    history_span.c.owner_origin == owner,
                    history_span.c.first_seq.in_(gone[start : start + _IN_LIMIT]),
                )
            )
        self.add(owner, sorted(set(after) - set(before), key=lambda span: span.first_seq))

    def delete(self, owner: str) -> None:
        """Removes all spans of the owner."""
        self._connection.execute(delete(history_span).where(history_span.c.owner_origin == owner))

    def covers(self, origin: str, first_seq: int, last_seq: int) -> list[tuple[int, int]]:
        """Returns the ranges (first, last) of an origin that sessions show and that meet this one."""
        # Grouped, because a thousand forks of one session mostly share where their spans begin.
        rows = self._connection.execute(
            select(history_span.c.first_seq, func.max(history_span.c.last_seq).label("last_seq"))
            .where(
                history_span.c.origin == origin,
                history_span.c.first_seq <= last_seq,
                history_span.c.last_seq >= first_seq,
            )
            .group_by(history_span.c.first_seq)
        )
        return [(row.first_seq, row.last_seq) for row in rows]

    def release(self, spans: Iterable[Span], now: datetime) -> None:
        """Notes ranges that a session dropped. Waits for a sweep that is at work on the same range."""
        for span in spans:
            while not self._note(span, now):
                pass

    def released(self, limit: int) -> list[Span]:
        """Returns ranges that wait for the sweep, oldest first."""
        rows = self._connection.execute(
            select(released_span.c.origin, released_span.c.first_seq, released_span.c.last_seq)
            .order_by(released_span.c.released_at)
            .limit(limit)
        )
        return [Span(row.origin, row.first_seq, row.last_seq) for row in rows]

    def take_released(self, span: Span) -> bool:
        """Removes the note of a range and locks out those who would note it again; False where it is gone."""
        return self._connection.execute(delete(released_span).where(*_noted(span))).rowcount > 0

    def _note(self, span: Span, now: datetime) -> bool:
        try:
            self._connection.execute(
                insert(released_span).values(
                    origin=span.origin, first_seq=span.first_seq, last_seq=span.last_seq, released_at=now
                )
            )
        except IntegrityError as error:
            if not is_duplicate(error):
                raise
            # Another session released the same range. Touching its note makes the sweep wait for this unit.
            query = update(released_span).where(*_noted(span)).values(released_at=now)
            return self._connection.execute(query).rowcount > 0
        return True


def _noted(span: Span) -> tuple[ColumnElement[bool], ...]:
    return (
        released_span.c.origin == span.origin,
        released_span.c.first_seq == span.first_seq,
        released_span.c.last_seq == span.last_seq,
    )
