"""The rows of one space in every table, counted; and those of tables that hold notes only, deleted."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, and_, delete, func, or_, select

from ramet_server.database.tables import metadata
from ramet_server.database.tables.session import deleted_session, history_span, record, session
from ramet_server.database.tables.shared import request_log
from ramet_server.database.tables.telemetry import telemetry_event, telemetry_producer
from ramet_server.database.tables.tree import session_removal, swept_node

_DELETES_AT_ONCE = 100

NOTES: Mapping[Table, ColumnElement[datetime]] = {
    request_log: request_log.c.created_at,
    session_removal: session_removal.c.requested_at,
    swept_node: swept_node.c.swept_at,
    telemetry_event: telemetry_event.c.created_at,
    telemetry_producer: telemetry_producer.c.updated_at,
    deleted_session: deleted_session.c.deleted_at,
}
"""Tables whose rows stand alone, and how old each row is."""


def count_rows(connection: Connection, space: str) -> dict[str, int]:
    """Counts the rows of a space by table; tables without any are left out."""
    counts = {table.name: _count(connection, _of_space(table, space)) for table in metadata.sorted_tables}
    return {name: count for name, count in counts.items() if count}


def delete_notes(connection: Connection, table: Table, space: str, through: datetime, limit: int) -> int:
    """Deletes at most ``limit`` rows of a table of ``NOTES`` that are no younger than a moment; returns how many."""
    key = tuple(table.primary_key.columns)
    old = NOTES[table] <= through
    # Read first, so that the deletes lock rows by their primary key only.
    rows = connection.execute(select(*key).where(table.c.space_id == space, old).order_by(*key).limit(limit)).all()
    deleted = 0
    for start in range(0, len(rows), _DELETES_AT_ONCE):
        # One OR per row, because SQLite scans the whole table for a list of row values.
        keys = [
            and_(*(column == part for column, part in zip(key, row, strict=True)))
            for row in rows[start : start + _DELETES_AT_ONCE]
        ]
        deleted += connection.execute(delete(table).where(or_(*keys), old)).rowcount
    return deleted


def _of_space(table: Table, space: str) -> ColumnElement[bool] | None:
    """Returns what says that a row is of a space; None where nothing in the row or its session can say it."""
    if "space_id" in table.c:
        return table.c.space_id == space
    origins = select(session.c.origin).where(session.c.space_id == space)
    if table is record:
        return record.c.origin.in_(select(history_span.c.origin).where(history_span.c.owner_origin.in_(origins)))
    owner = table.c.get("owner_origin", table.c.get("origin"))
    return None if owner is None else owner.in_(origins)


def _count(connection: Connection, here: ColumnElement[bool] | None) -> int:
    if here is None:
        return 0
    wanted: Any = select(func.count()).where(here)
    return int(connection.execute(wanted).scalar_one())
