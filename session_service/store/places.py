"""Records of many short spans, each named by its place: origin and seq.

A chain of forks has a span of a few records per fork. A range for each makes a statement of many terms,
and the database opens its table once per term: 1,000 spans of one record took MariaDB 49 ms of CPU.
Spans are full, so their places are known, and one JSON text of them joined by the primary key takes 5 ms.
Only places are joined, never ranges: MySQL and MariaDB would read a whole source for a range in a join.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Integer, Select, Text, bindparam, literal_column, select, text

from ramet_server.database.prepared import Prepared
from ramet_server.database.tables.session import record
from session_service.rules.spans import Span
from session_service.store import ranges

_SHORT = 16
"""Records of a span that are rather named one by one; a longer one is read as a range."""

_FEW = 8
"""So many spans are read as ranges however short they are."""

_MOST_PLACES = 4096
"""Places that one statement names, some 200 KB."""

_TABLES = {
    "mysql": (
        "JSON_TABLE(:places, '$[*]' COLUMNS (origin CHAR(32) CHARACTER SET ascii COLLATE ascii_bin PATH '$[0]',"
        " seq BIGINT PATH '$[1]')) AS place"
    ),
    "sqlite": "json_each(:places) AS place",
}
_COLUMNS = {
    "mysql": ("place.origin", "place.seq"),
    "sqlite": ("json_extract(place.value, '$[0]')", "json_extract(place.value, '$[1]')"),
}


@dataclass(slots=True)
class Chunk:
    """Spans that are read at once."""

    ranges: list[Span] = field(default_factory=list)
    """Those that are read as ranges."""
    places: list[Span] = field(default_factory=list)
    """Those whose records are named one by one."""

    def places_json(self) -> str:
        """Returns all places as one JSON text."""
        # An origin is hexadecimal digits, as it stands.
        places = [f'["{origin}",{seq}]' for origin, first, last in self.places for seq in range(first, last + 1)]
        return f"[{','.join(places)}]"


def take_chunk(spans: Iterator[Span], wanted: int) -> Chunk | None:
    """Takes the next spans, as many as can hold what is wanted, and no more than one reading may name."""
    long: list[Span] = []
    short: list[Span] = []
    places = 0
    for span in spans:
        _, first, last = span
        length = last - first + 1
        if length > _SHORT:
            long.append(span)
        else:
            short.append(span)
            places += length
        wanted -= length
        if wanted <= 0 or len(long) == ranges.RANGES_PER_STATEMENT - _FEW or places >= _MOST_PLACES:
            break
    if not long and not short:
        return None
    return Chunk([*long, *short]) if len(short) <= _FEW else Chunk(long, short)


@cache
def at_places(columns: tuple[ColumnElement[Any], ...], roles: int) -> Prepared:
    """Returns the statement that reads the records at ``places``; of so many roles, where there are some."""
    names = [bindparam(f"role{place}", type_=record.c.role.type) for place in range(roles)]

    def statement(dialect: str) -> Select[Any]:
        origin, seq = _COLUMNS[dialect]
        query = (
            select(*columns)
            .prefix_with("STRAIGHT_JOIN", dialect="mysql")
            .select_from(text(_TABLES[dialect]).bindparams(bindparam("places", type_=Text())), record)
            .where(
                record.c.origin == literal_column(origin, record.c.origin.type),
                record.c.seq == literal_column(seq, Integer()),
            )
        )
        return query.where(record.c.role.in_(names)) if names else query

    return Prepared(statement)
