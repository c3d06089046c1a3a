"""The SQL of a verification: rows of many sessions at once, counted where that is enough."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, and_, delete, func, select, update

from ramet_server.database.tables.session import (
    arriving_session,
    broken_group,
    context_slot,
    history_span,
    record,
    released_span,
    session,
    session_tag,
)
from ramet_server.domain.ids import new_origin
from session_service.rules.spans import Released, Span
from session_service.rules.verifying.ports import Owner, Range, Standing, Tally
from session_service.store.spans import SqlSpans

_S, _H, _R, _B = session.c, history_span.c, record.c, broken_group.c
_OF_SESSIONS = {"session_tag": session_tag, "context_slot": context_slot}
_OWNED = {"history_span": _H.owner_origin, "broken_group": _B.origin}
# What an import is bringing has spans, but no session yet, and not all of its records.
_ARRIVING = select(arriving_session.c.origin)
_STANDING = (_S.session_id, _S.origin, _S.head_seq, _S.floor_seq, _S.open_group_json)

_SPANS_AT_ONCE = 20_000
"""A session at the end of a long chain of forks has a span of each."""


class SqlAudit:
    """All that is looked at; implements ``rules.verifying.ports.Audit``."""

    def __init__(self, connection: Connection, space: str) -> None:
        self._connection = connection
        self._space = space
        self._spans = SqlSpans(connection)

    def space_after(self, space: str) -> str | None:
        """Returns the next space, by name, that has rows of this service."""
        found = [
            self._connection.execute(select(func.min(t.c.space_id)).where(t.c.space_id > space)).scalar_one()
            for t in (session, session_tag, context_slot)
        ]
        return min((each for each in found if each is not None), default=None)

    def sessions(self, after_id: str, limit: int) -> list[Standing]:
        """Returns the next sessions by id."""
        wanted = select(*_STANDING).where(_S.space_id == self._space, _S.session_id > after_id)
        rows = self._connection.execute(wanted.order_by(_S.session_id).limit(limit)).all()
        return self._standings(self._fitting(rows))

    def lock_session(self, session_id: str) -> Standing | None:
        """Returns a session; every other writer waits until this unit ends."""
        wanted = select(*_STANDING).where(_S.space_id == self._space, _S.session_id == session_id)
        found = self._standings(self._connection.execute(wanted.with_for_update()).all())
        return found[0] if found else None

    def lock_origin(self, origin: str) -> Owner | None:
        """Returns the session that an origin belongs to; nobody changes it until this unit ends."""
        wanted = select(_S.space_id, _S.session_id, _S.head_seq).where(_S.origin == origin)
        row = self._connection.execute(wanted.with_for_update()).one_or_none()
        return None if row is None else Owner(*row)

    def owners(self, origins: Collection[str]) -> Mapping[str, Owner]:
        """Returns the sessions, of all spaces, that these origins belong to."""
        if not origins:
            return {}
        wanted = select(_S.origin, _S.space_id, _S.session_id, _S.head_seq).where(_S.origin.in_(sorted(origins)))
        return {
            row.origin: Owner(row.space_id, row.session_id, row.head_seq) for row in self._connection.execute(wanted)
        }

    def set_head(self, session_id: str, head_seq: int) -> None:
        """Stores another head; the state of its last tool-call group is forgotten."""
        # "?": only the history can tell.
        self._update(session_id, head_seq=head_seq, open_group_json="?")

    def forget_groups(self, session_id: str) -> None:
        """Forgets the state of the last tool-call groups."""
        self._update(session_id, open_group_json="?")

    def unmark(self, owner: str, seqs: Sequence[int]) -> None:
        """Removes some marks of broken groups."""
        for seq in seqs:
            self._connection.execute(delete(broken_group).where(_B.origin == owner, _B.seq == seq))

    def set_floor(self, session_id: str, floor_seq: int) -> None:
        """Stores another floor."""
        self._update(session_id, floor_seq=floor_seq)

    def add_span(self, owner: str, span: Span) -> None:
        """Stores one more span of an owner."""
        self._spans.add(owner, [span])

    def spans_of(self, owner: str) -> list[Span]:
        """Returns the spans of an owner in order."""
        return self._spans.of(owner)

    def delete_spans(self, owner: str) -> None:
        """Removes all spans of an owner."""
        self._spans.delete(owner)

    def tallies(self, origins: Collection[str]) -> Mapping[str, Tally]:
        """Counts the records of origins; those without any are left out."""
        if not origins:
            return {}
        wanted = select(_R.origin, func.count(), func.min(_R.seq), func.max(_R.seq))
        rows = self._connection.execute(wanted.where(_R.origin.in_(sorted(origins))).group_by(_R.origin))
        return {origin: Tally(*rest) for origin, *rest in rows}

    def covers(self, origins: Collection[str]) -> Mapping[str, Sequence[Range]]:
        """Returns, by origin, the ranges that sessions show."""
        # Grouped, because a thousand forks of one session mostly share where their spans begin.
        shown = and_(_H.origin.in_(sorted(origins)), _H.owner_origin.not_in(_ARRIVING))
        wanted = select(_H.origin, _H.first_seq, func.max(_H.last_seq)).where(shown)
        return _by_origin(self._connection.execute(wanted.group_by(_H.origin, _H.first_seq)).all())

    def released(self, origins: Collection[str]) -> Mapping[str, Sequence[Range]]:
        """Returns, by origin, the ranges that wait for the sweep, and those that an import is filling."""
        c, named = released_span.c, sorted(origins)
        wanted = select(c.origin, c.first_seq, c.last_seq).where(c.origin.in_(named))
        arriving = select(_H.origin, _H.first_seq, _H.last_seq).where(
            _H.origin.in_(named), _H.owner_origin.in_(_ARRIVING)
        )
        return _by_origin([*self._connection.execute(wanted), *self._connection.execute(arriving)])

    def release(self, spans: Sequence[Span], now: datetime) -> None:
        """Notes ranges for the sweep, as ones that nobody known dropped."""
        # Under an owner of their own, whose notes meet no other's.
        owner = new_origin()
        self._spans.release([Released(owner, span) for span in spans], now)

    def count(self, origin: str, seqs: Range) -> int:
        """Counts the records of a range."""
        wanted = select(func.count()).select_from(record)
        here = and_(_R.origin == origin, _R.seq >= seqs[0], _R.seq <= seqs[1])
        return int(self._connection.execute(wanted.where(here)).scalar_one())

    def origins(self, after: str, limit: int) -> list[str]:
        """Returns the next origins that records or spans name, in order."""
        found: set[str] = set()
        for column in (_R.origin, _H.origin):
            wanted = select(column).distinct().where(column > after).order_by(column).limit(limit)
            found.update(self._connection.execute(wanted).scalars())
        return sorted(found)[:limit]

    def showing(self, origin: str, seq: int) -> Owner | None:
        """Returns one of the sessions that show a record, whether it is there or not."""
        row = self._connection.execute(
            select(_S.space_id, _S.session_id, _S.head_seq)
            .join_from(history_span, session, _S.origin == _H.owner_origin)
            .where(_H.origin == origin, _H.first_seq <= seq, _H.last_seq >= seq)
            .limit(1)
        ).one_or_none()
        return None if row is None else Owner(*row)

    def strangers(self, part: str, after_id: str, limit: int) -> list[tuple[str, int]]:
        """Returns the next session ids that have rows of a part but no session."""
        table = _OF_SESSIONS[part]
        here = and_(_S.space_id == table.c.space_id, _S.session_id == table.c.session_id)
        wanted = (
            select(table.c.session_id, func.count())
            .outerjoin_from(table, session, here)
            .where(table.c.space_id == self._space, table.c.session_id > after_id, _S.session_id.is_(None))
            .group_by(table.c.session_id)
            .order_by(table.c.session_id)
        )
        return self._pairs(wanted, limit)

    def delete_strangers(self, part: str, session_id: str) -> None:
        """Removes what a part holds of a session that does not exist."""
        table = _OF_SESSIONS[part]
        self._connection.execute(delete(table).where(table.c.space_id == self._space, table.c.session_id == session_id))

    def ownerless(self, part: str, after: str, limit: int) -> list[tuple[str, int]]:
        """Returns the next origins that own rows of a part but are no session's."""
        owner = _OWNED[part]
        wanted = (
            select(owner, func.count())
            .outerjoin_from(owner.table, session, _S.origin == owner)
            .where(owner > after, _S.origin.is_(None), owner.not_in(_ARRIVING))
            .group_by(owner)
            .order_by(owner)
        )
        return self._pairs(wanted, limit)

    def delete_marks(self, owner: str) -> None:
        """Removes all marks of broken groups of an owner."""
        self._connection.execute(delete(broken_group).where(_B.origin == owner))

    def _fitting(self, rows: Sequence[Any]) -> Sequence[Any]:
        """Returns as many of the first sessions as may be in memory with all their spans, and one at least."""
        origins = [row.origin for row in rows]
        wanted = select(_H.owner_origin, func.count()).where(_H.owner_origin.in_(origins)).group_by(_H.owner_origin)
        counts = {row[0]: row[1] for row in self._connection.execute(wanted)} if origins else {}
        room = _SPANS_AT_ONCE
        for place, origin in enumerate(origins):
            room -= counts.get(origin, 0)
            if room < 0:
                return rows[: max(place, 1)]
        return rows

    def _standings(self, rows: Sequence[Any]) -> list[Standing]:
        origins = [row.origin for row in rows]
        if not origins:
            return []
        last = select(_R.origin, func.max(_R.seq)).where(_R.origin.in_(origins)).group_by(_R.origin)
        last_seqs = {row[0]: row[1] for row in self._connection.execute(last)}
        shown: dict[str, list[Span]] = {}
        wanted = select(_H.owner_origin, _H.origin, _H.first_seq, _H.last_seq).where(_H.owner_origin.in_(origins))
        for row in self._connection.execute(wanted.order_by(_H.owner_origin, _H.first_seq)):
            shown.setdefault(row.owner_origin, []).append(Span(row.origin, row.first_seq, row.last_seq))
        marks: dict[str, list[int]] = {}
        marked = select(_B.origin, _B.seq).where(_B.origin.in_(origins)).order_by(_B.origin, _B.seq)
        for origin, seq in self._connection.execute(marked):
            marks.setdefault(origin, []).append(seq)
        return [
            Standing(
                row.session_id,
                row.origin,
                row.head_seq,
                row.floor_seq,
                shown.get(row.origin, ()),
                last_seqs.get(row.origin, 0),
                row.open_group_json,
                marks.get(row.origin, ()),
            )
            for row in rows
        ]

    def _update(self, session_id: str, **values: object) -> None:
        here = and_(_S.space_id == self._space, _S.session_id == session_id)
        self._connection.execute(update(session).where(here).values(**values))

    def _pairs(self, wanted: Select[Any], limit: int) -> list[tuple[str, int]]:
        return [(row[0], row[1]) for row in self._connection.execute(wanted.limit(limit))]


def _by_origin(rows: Sequence[Any]) -> dict[str, list[Range]]:
    found: dict[str, list[Range]] = {}
    for origin, first, last in rows:
        found.setdefault(origin, []).append((first, last))
    return found
