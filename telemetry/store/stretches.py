"""A bounded stretch of an index that ends with created_at and id, newest first."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Subquery, Table, func, or_, select, union_all

from telemetry.rules.pages import Place


@dataclass(frozen=True, slots=True)
class Stretch:
    """Numbers and moments of at most ``length`` rows."""

    rows: Subquery
    length: int

    def end(self, connection: Connection) -> Place | None:
        """Returns its last row where it is as long as it may be; None where the index ends before."""
        rows = self.rows.c
        last = select(rows.created_at, rows.id).order_by(rows.created_at.desc(), rows.id.desc())
        row = connection.execute(last.offset(self.length - 1).limit(1)).one_or_none()
        return None if row is None else Place(row.created_at, row.id)


def stretch(
    table: Table,
    prefixes: Sequence[Sequence[ColumnElement[bool]]],
    created: tuple[datetime | None, datetime | None],
    after: Place | None,
    length: int,
) -> Stretch:
    """Returns the stretch behind a place.

    Each prefix is the equalities on the columns of an index before created_at. With several, which must
    exclude each other, the stretch is taken from all of them together, each read by its index.
    """
    conditions = _range(table, created, after)
    branches = [_newest(select(table.c.id, table.c.created_at).where(*p, *conditions), table, length) for p in prefixes]
    if len(branches) == 1:
        return Stretch(branches[0].subquery("stretch"), length)
    # SQLite wants the parts of a union within queries of their own where they have an end.
    inner = [select(branch.subquery()) for branch in branches]
    together = union_all(*inner).subquery()
    rows = select(together.c.id, together.c.created_at)
    return Stretch(_newest(rows, together, length).subquery("stretch"), length)


def _newest(rows: Select[Any], of: Table | Subquery, length: int) -> Select[Any]:
    return rows.order_by(of.c.created_at.desc(), of.c.id.desc()).limit(length)


def _range(
    table: Table, created: tuple[datetime | None, datetime | None], after: Place | None
) -> list[ColumnElement[bool]]:
    since, before = created
    conditions: list[ColumnElement[bool]] = []
    if since is not None:
        conditions.append(table.c.created_at >= since)
    if before is not None:
        conditions.append(table.c.created_at < before)
    if after is not None:
        # In this form both backends see the range of the key.
        conditions.append(table.c.created_at <= after.created_at)
        conditions.append(or_(table.c.created_at < after.created_at, table.c.id < after.id))
    return conditions


def text_size(*columns: ColumnElement[Any]) -> ColumnElement[Any]:
    """Returns the size of texts together, in characters or bytes; NULL counts nothing."""
    total: ColumnElement[Any] = func.coalesce(func.length(columns[0]), 0)
    for column in columns[1:]:
        total = total + func.coalesce(func.length(column), 0)
    return total


def fitting(sizes: Sequence[int], limit: int, max_bytes: int) -> int:
    """Returns how many rows fit onto a page: at least one where there is any."""
    total = 0
    for place, size in enumerate(sizes[:limit]):
        total += size
        if place and total > max_bytes:
            return place
    return min(len(sizes), limit)
