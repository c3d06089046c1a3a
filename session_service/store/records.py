"""The SQL of records: always ranges of one origin each, never a join of spans with records.

Joined by BETWEEN, a database reads a whole source to show a few of its records. So each span is one
constant range, and several are put together by UNION ALL; of many short ones each record is named.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict
from functools import cache
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Connection,
    Delete,
    Integer,
    Select,
    and_,
    bindparam,
    delete,
    func,
    insert,
    literal,
    or_,
    select,
    union_all,
)
from sqlalchemy import update as sql_update

from ramet_server.database.prepared import Prepared, Row
from ramet_server.database.tables.session import record
from session_service.rules.spans import Span, take
from session_service.rules.values import LightRecord, Record, Role, ToolCall
from session_service.store import ranges
from session_service.store.places import at_places, take_chunk

_FULL = (
    record.c.seq,
    record.c.role,
    record.c.content,
    record.c.parts_json,
    record.c.tool_calls_json,
    record.c.tool_call_id,
    record.c.name,
    record.c.client_time,
    record.c.metadata_json,
    record.c.size_bytes,
    record.c.created_at,
    record.c.erased_at,
)
_SIZES = (record.c.seq, record.c.size_bytes)
_LIGHT = (record.c.seq, record.c.role, record.c.tool_call_id, record.c.tool_calls_json)

_ERASABLE = {"content", "parts_json", "tool_calls_json", "metadata_json", "size_bytes", "erased_at"}

_ROLES = {role.value: role for role in Role}

_seq = itemgetter(0)
"""Every list of columns begins with the seq."""

_Columns = tuple[ColumnElement[Any], ...]


class SqlRecords:
    """Records under their origins; implements ``rules.ports.Records``."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def insert(self, origin: str, records: Sequence[Record]) -> None:
        """Stores new records."""
        if records:
            self._connection.execute(insert(record), [_values_of(origin, each) for each in records])

    def read(
        self, spans: Sequence[Span], limit: int, *, descending: bool = False, roles: Collection[Role] = ()
    ) -> list[Record]:
        """Returns the first records that the spans show, of any of the roles (none given: of all)."""
        return list(map(_record, self._page(_FULL, spans, limit, descending, roles)))

    def sizes(
        self, spans: Sequence[Span], limit: int, *, descending: bool = False, roles: Collection[Role] = ()
    ) -> list[tuple[int, int]]:
        """Returns seq and size of what ``read`` would return."""
        return [(seq, size) for seq, size in self._page(_SIZES, spans, limit, descending, roles)]

    def light(self, spans: Sequence[Span], limit: int, *, descending: bool = False) -> list[LightRecord]:
        """Returns what tells groups apart of what ``read`` would return."""
        return [_light(row) for row in self._page(_LIGHT, spans, limit, descending, ())]

    def skip(self, spans: Sequence[Span], offset: int, *, descending: bool, roles: Collection[Role]) -> int | None:
        """Returns the seq of the record of these roles that ``offset`` others stand before; None beyond the last."""
        ordered = list(reversed(spans)) if descending else list(spans)
        for start in range(0, len(ordered), ranges.RANGES_PER_STATEMENT):
            chunk = ordered[start : start + ranges.RANGES_PER_STATEMENT]
            counts = [
                select(literal(place).label("place"), func.count().label("records")).where(_shown(span, roles))
                for place, span in enumerate(chunk)
            ]
            for row in sorted(self._connection.execute(union_all(*counts)), key=lambda row: row.place):
                if offset < row.records:
                    seq = record.c.seq.desc() if descending else record.c.seq
                    query = select(record.c.seq).where(_shown(chunk[row.place], roles)).order_by(seq)
                    seq_found: int = self._connection.execute(query.limit(1).offset(offset)).scalar_one()
                    return seq_found
                offset -= row.records
        return None

    def count(self, spans: Sequence[Span], roles: Collection[Role]) -> int:
        """Returns how many records of these roles the spans show (none given: of all)."""
        if not roles:
            # Spans are full.
            return sum(span.length for span in spans)
        return sum(
            self._connection.execute(select(func.count()).where(_shown(span, roles))).scalar_one() for span in spans
        )

    def erased(self, spans: Sequence[Span]) -> set[int]:
        """Returns the seqs of those that were erased."""
        seqs: set[int] = set()
        for chunk in ranges.chunks(spans):
            seqs.update(
                self._connection.execute(_erased(ranges.rounded(len(chunk))), ranges.parameters(chunk)).scalars()
            )
        return seqs

    def erase(self, origin: str, erased: Record) -> None:
        """Stores what is left of an erased record."""
        values = {name: value for name, value in _values_of(origin, erased).items() if name in _ERASABLE}
        self._connection.execute(
            sql_update(record).where(record.c.origin == origin, record.c.seq == erased.seq).values(**values)
        )

    def delete(self, spans: Sequence[Span]) -> None:
        """Removes the rows of these ranges."""
        # In the order of their keys, so that two sweeps never wait for each other.
        for chunk in ranges.chunks(sorted(spans, key=lambda span: (span.origin, span.first_seq))):
            self._connection.execute(_delete(ranges.rounded(len(chunk))), ranges.parameters(chunk))

    def _page(
        self, columns: _Columns, spans: Sequence[Span], limit: int, descending: bool, roles: Collection[Role]
    ) -> list[Row]:
        if not roles:
            # Spans are full, so what holds the first records is known before.
            spans = take(spans, limit, descending=descending)
        rows: list[Row] = []
        ordered = iter(reversed(spans) if descending else spans)
        wanted = limit
        while len(rows) < limit and (chunk := take_chunk(ordered, wanted)):
            found: list[Row] = []
            role_values = ranges.padded("role", roles) if roles else {}
            role_count = ranges.rounded(len(roles)) if roles else 0
            if chunk.places:
                named = at_places(columns, role_count)
                found += named.all(self._connection, role_values | {"places": chunk.places_json()})
            if chunk.ranges:
                count = ranges.rounded(len(chunk.ranges))
                query = _of_roles(columns, count, role_count, descending) if roles else _of_all(columns, count)
                values = ranges.parameters(chunk.ranges) | role_values
                found += query.all(self._connection, values | {"most": limit - len(rows)})
            # The seqs of spans never interleave, but a union may come in any order.
            rows += sorted(found, key=_seq, reverse=descending)
            # Where a role is rare, ever more is looked at once.
            wanted *= 4
        return rows[:limit]


def _in_range(place: int) -> ColumnElement[bool]:
    return and_(
        record.c.origin == ranges.origin(place),
        record.c.seq >= ranges.first(place),
        record.c.seq <= ranges.last(place),
    )


@cache
def _of_all(columns: _Columns, count: int) -> Prepared:
    terms = [select(*columns).where(_in_range(place)) for place in range(count)]
    return Prepared(terms[0] if count == 1 else union_all(*terms))


@cache
def _of_roles(columns: _Columns, count: int, roles: int, descending: bool) -> Prepared:
    of_roles = record.c.role.in_([bindparam(f"role{place}", type_=record.c.role.type) for place in range(roles)])
    seq = record.c.seq.desc() if descending else record.c.seq
    most = bindparam("most", type_=Integer())
    terms = [select(*columns).where(_in_range(place), of_roles).order_by(seq).limit(most) for place in range(count)]
    # SQLite takes a limit within a union only in a query of its own.
    return Prepared(terms[0] if count == 1 else union_all(*(select(term.subquery()) for term in terms)))


@cache
def _erased(count: int) -> Select[Any] | CompoundSelect[Any]:
    terms = [select(record.c.seq).where(_in_range(place), record.c.erased_at.is_not(None)) for place in range(count)]
    return terms[0] if count == 1 else union_all(*terms)


@cache
def _delete(count: int) -> Delete:
    return delete(record).where(or_(*map(_in_range, range(count))))


def _shown(span: Span, roles: Collection[Role]) -> ColumnElement[bool]:
    shown = and_(record.c.origin == span.origin, record.c.seq >= span.first_seq, record.c.seq <= span.last_seq)
    return and_(shown, record.c.role.in_(sorted(roles))) if roles else shown


_COLUMN_NAMES = [column.name for column in record.columns]

INSERT_RECORDS = Prepared(insert(record), columns=_COLUMN_NAMES)
"""Stores records, as ``row_of`` makes them."""


# As plain text, which has the quickest way to the driver.
_WORDS = {role: role.value for role in Role}


def row_of(origin: str, each: Record) -> tuple[Any, ...]:
    """Returns the row of a record, its values in the order of the table's columns."""
    calls = [asdict(call) for call in each.tool_calls] if each.tool_calls else None
    return (
        origin,
        each.seq,
        _WORDS[each.role],
        each.content,
        each.parts_json,
        json.dumps(calls, ensure_ascii=False, separators=(",", ":")) if calls else None,
        each.tool_call_id,
        each.name,
        each.client_time,
        each.metadata_json,
        each.size_bytes,
        each.created_at,
        each.erased_at,
    )


def _values_of(origin: str, each: Record) -> dict[str, Any]:
    return dict(zip(_COLUMN_NAMES, row_of(origin, each), strict=True))


def _record(row: Row) -> Record:
    # Made of its values in their order, which takes half the time of making it by their names.
    seq, role, content, parts, calls_json, *others = row
    calls = tuple([ToolCall(**call) for call in json.loads(calls_json)]) if calls_json else ()
    return Record(seq, _ROLES[role], content, parts, calls, *others)


def _light(row: Row) -> LightRecord:
    seq, role, tool_call_id, calls_json = row
    calls = json.loads(calls_json) if calls_json else ()
    return LightRecord(seq, _ROLES[role], tuple(call["call_id"] for call in calls), tool_call_id)
