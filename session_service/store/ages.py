"""The SQL of how old sessions are, and what they alone show."""

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select

from ramet_server.database.tables.session import context_slot, history_span, record, session
from session_service.rules.expiry import Idle, Shown
from session_service.rules.spans import Span, clip

_S, _H, _C, _R = session.c, history_span.c, context_slot.c, record.c
_IN_LIMIT = 500


class SqlIdleSessions:
    """Sessions of one space; implements ``rules.expiry.IdleSessions``."""

    def __init__(self, connection: Connection, space: str) -> None:
        self._connection = connection
        self._space = space

    def space_after(self, space: str) -> str | None:
        """Returns the next space, by name, that has sessions."""
        found: str | None = self._connection.execute(
            select(func.min(_S.space_id)).where(_S.space_id > space)
        ).scalar_one()
        return found

    def idle(self, before: datetime, after: Idle | None, limit: int) -> list[Idle]:
        """Returns the next idle sessions by their last activity."""
        here = [_S.space_id == self._space, *_idle(before)]
        if after is not None:
            here.append(_S.last_active_at >= after.last_active_at)
            here.append(
                or_(
                    _S.last_active_at > after.last_active_at,
                    and_(_S.last_active_at == after.last_active_at, _S.session_id > after.session_id),
                )
            )
        wanted = select(_S.session_id, _S.origin, _S.last_active_at).where(*here)
        # Else they may read and sort a whole space by a smaller index.
        wanted = wanted.with_hint(session, "FORCE INDEX (session_by_activity)", "mysql")
        rows = self._connection.execute(wanted.order_by(_S.last_active_at, _S.session_id).limit(limit))
        return [Idle(*row) for row in rows]

    def is_idle(self, session_id: str, before: datetime) -> bool:
        """Tells whether a session that exists is idle."""
        here = and_(_S.space_id == self._space, _S.session_id == session_id)
        return self._connection.execute(select(_S.session_id).where(here, *_idle(before))).first() is not None

    def origins_of(self, owners: Collection[str]) -> set[str]:
        """Returns the origins whose records these sessions show."""
        found: set[str] = set()
        ordered = sorted(owners)
        for start in range(0, len(ordered), _IN_LIMIT):
            some = _H.owner_origin.in_(ordered[start : start + _IN_LIMIT])
            found.update(self._connection.execute(select(_H.origin).where(some).distinct()).scalars())
        return found

    def shown(self, origin: str) -> Sequence[Shown]:
        """Returns who shows records of an origin, none beyond the last one that is there."""
        last: int | None = self._connection.execute(select(func.max(_R.seq)).where(_R.origin == origin)).scalar_one()
        rows = self._connection.execute(select(_H.owner_origin, _H.first_seq, _H.last_seq).where(_H.origin == origin))
        return [
            Shown(owner, span)
            for owner, first_seq, last_seq in rows
            for span in clip([Span(origin, first_seq, last_seq)], 0, last or 0)
        ]

    def count(self, found: Sequence[Span]) -> int:
        """Counts the records of these ranges."""
        total = 0
        for span in found:
            here = and_(_R.origin == span.origin, _R.seq >= span.first_seq, _R.seq <= span.last_seq)
            total += int(self._connection.execute(select(func.count()).select_from(record).where(here)).scalar_one())
        return total


# Not EXISTS: MariaDB may answer that by reading all slots first. This it looks up, by key.
_WRITTEN_AT = (
    select(func.max(_C.updated_at))
    .where(_C.space_id == _S.space_id, _C.session_id == _S.session_id)
    .correlate(session)
    .scalar_subquery()
)


def _idle(before: datetime) -> list[ColumnElement[bool]]:
    written_at = func.coalesce(_WRITTEN_AT, _S.last_active_at, type_=_S.last_active_at.type)
    return [_S.last_active_at < before, _S.updated_at < before, written_at < before]
