"""The SQL of what ingest remembers for a time only: ids of events, and producers."""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, and_, delete, or_, select

from ramet_server.database.database import Database
from ramet_server.database.tables.telemetry import telemetry_event, telemetry_producer
from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock

_PRODUCER_DAYS = 30
_DELETES_AT_ONCE = 100


class SqlSweep:
    """What the sweep of all spaces asks for; every step may be repeated, by many servers at once."""

    def __init__(self, database: Database, clock: Clock, request_id_hours: int) -> None:
        self._database = database
        self._clock = clock
        self._kept_for = timedelta(hours=request_id_hours)

    def forget_events(self, call: Call, limit: int) -> int:
        """Forgets the ids of some ``limit`` events whose time is over; returns how many.

        Such an event that comes once more is merged once more, which changes nothing.
        """
        before = self._clock.now() - self._kept_for
        age = telemetry_event.c.created_at
        return self._database.write(call, lambda connection: _purge(connection, telemetry_event, age, before, limit))

    def forget_producers(self, call: Call, limit: int) -> int:
        """Forgets some ``limit`` producers that were not heard of for a month; returns how many."""
        before = self._clock.now() - timedelta(days=_PRODUCER_DAYS)
        age = telemetry_producer.c.updated_at
        return self._database.write(call, lambda connection: _purge(connection, telemetry_producer, age, before, limit))


def _purge(connection: Connection, table: Table, age: ColumnElement[Any], before: datetime, limit: int) -> int:
    key = tuple(table.primary_key.columns)
    # Read first, so that the deletes lock rows by their primary key only.
    rows = connection.execute(select(*key).where(age <= before).order_by(age).limit(limit)).all()
    deleted = 0
    for start in range(0, len(rows), _DELETES_AT_ONCE):
        # One OR per row, because SQLite scans the whole table for a list of row values.
        keys = [
            and_(*(column == part for column, part in zip(key, row, strict=True)))
            for row in rows[start : start + _DELETES_AT_ONCE]
        ]
        # The age once more, since a producer may come back between.
        deleted += connection.execute(delete(table).where(or_(*keys), age <= before)).rowcount
    return deleted
