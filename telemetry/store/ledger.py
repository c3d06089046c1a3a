"""The SQL of the events that were taken, and of their producers."""

from collections.abc import Collection, Mapping
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, and_, insert, select, update
from sqlalchemy.exc import IntegrityError

from ramet_server.database.faults import is_duplicate
from ramet_server.database.tables.telemetry import telemetry_event, telemetry_producer
from telemetry.rules.ports import KeyTaken, Producer


class SqlLedger:
    """Events of one space; implements ``rules.ports.Ledger``."""

    def __init__(self, connection: Connection, space: str) -> None:
        self._connection = connection
        self._space = space

    def find(self, event_ids: Collection[str]) -> Mapping[str, str]:
        """Returns the body hashes of those that are known."""
        if not event_ids:
            return {}
        query = select(telemetry_event.c.event_id, telemetry_event.c.body_hash).where(
            telemetry_event.c.space_id == self._space, telemetry_event.c.event_id.in_(sorted(event_ids))
        )
        return {row.event_id: row.body_hash for row in self._connection.execute(query)}

    def add(self, hashes: Mapping[str, str], now: datetime) -> None:
        """Notes events by id; raises KeyTaken where another transaction noted one of them first."""
        # Sorted, so that two transactions that note the same events do not wait for each other crosswise.
        rows = [
            {"space_id": self._space, "event_id": event_id, "body_hash": body_hash, "created_at": now}
            for event_id, body_hash in sorted(hashes.items())
        ]
        try:
            self._connection.execute(insert(telemetry_event), rows)
        except IntegrityError as error:
            if is_duplicate(error):
                raise KeyTaken from error
            raise


class SqlProducers:
    """Producers of one space; implements ``rules.ports.Producers``."""

    def __init__(self, connection: Connection, space: str) -> None:
        self._connection = connection
        self._space = space

    def lock(self, producer_id: str) -> Producer | None:
        """Returns the producer; all its other streams wait until this unit ends."""
        t = telemetry_producer.c
        query = select(t.producer_id, t.committed_through_seq, t.holder, t.dropped_count)
        row = self._connection.execute(query.where(self._key(producer_id)).with_for_update()).one_or_none()
        return None if row is None else Producer(**row._asdict())

    def insert(self, producer: Producer, now: datetime) -> None:
        """Stores a new producer; raises KeyTaken where there is one."""
        try:
            self._connection.execute(
                insert(telemetry_producer).values(
                    space_id=self._space, producer_id=producer.producer_id, **_values(producer, now)
                )
            )
        except IntegrityError as error:
            if is_duplicate(error):
                raise KeyTaken from error
            raise

    def save(self, producer: Producer, now: datetime) -> None:
        """Stores a locked producer."""
        self._connection.execute(
            update(telemetry_producer).where(self._key(producer.producer_id)).values(**_values(producer, now))
        )

    def _key(self, producer_id: str) -> ColumnElement[bool]:
        return and_(telemetry_producer.c.space_id == self._space, telemetry_producer.c.producer_id == producer_id)


def _values(producer: Producer, now: datetime) -> dict[str, object]:
    return {
        "committed_through_seq": producer.committed_through_seq,
        "holder": producer.holder,
        "dropped_count": producer.dropped_count,
        "updated_at": now,
    }
