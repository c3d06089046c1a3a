"""The SQL of the events that were taken, and of their producers."""

from collections.abc import Collection, Mapping
from datetime import datetime

from sqlalchemy import Connection, and_, bindparam, insert, select, update
from sqlalchemy.exc import IntegrityError

from ramet_server.database.faults import is_duplicate
from ramet_server.database.rewriting import insert_rows
from ramet_server.database.tables.telemetry import telemetry_event, telemetry_producer
from telemetry.rules.ports import KeyTaken, Producer

# Statements are built once: in a batch of one event, building them would take longer than running them.
_FIND = select(telemetry_event.c.event_id, telemetry_event.c.body_hash).where(
    telemetry_event.c.space_id == bindparam("space"), telemetry_event.c.event_id.in_(bindparam("ids", expanding=True))
)

_P = telemetry_producer.c
_PRODUCER = and_(_P.space_id == bindparam("space"), _P.producer_id == bindparam("producer"))
_LOCK = select(_P.producer_id, _P.committed_through_seq, _P.holder, _P.dropped_count).where(_PRODUCER).with_for_update()

_SAVE = (
    update(telemetry_producer)
    .where(_PRODUCER)
    .values({name: bindparam(name) for name in ("committed_through_seq", "holder", "dropped_count", "updated_at")})
)


class SqlLedger:
    """Events of one space; implements ``rules.ports.Ledger``."""

    def __init__(self, connection: Connection, space: str) -> None:
        self._connection = connection
        self._space = space

    def find(self, event_ids: Collection[str]) -> Mapping[str, str]:
        """Returns the body hashes of those that are known."""
        if not event_ids:
            return {}
        found = self._connection.execute(_FIND, {"space": self._space, "ids": sorted(event_ids)})
        return {row.event_id: row.body_hash for row in found}

    def add(self, hashes: Mapping[str, str], now: datetime) -> None:
        """Notes events by id; raises KeyTaken where another transaction noted one of them first."""
        # Sorted, so that two transactions that note the same events do not wait for each other crosswise.
        rows = [(self._space, event_id, body_hash, now) for event_id, body_hash in sorted(hashes.items())]
        try:
            insert_rows(self._connection, telemetry_event, rows)
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
        row = self._connection.execute(_LOCK, {"space": self._space, "producer": producer_id}).one_or_none()
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
        key = {"space": self._space, "producer": producer.producer_id}
        self._connection.execute(_SAVE, key | _values(producer, now))


def _values(producer: Producer, now: datetime) -> dict[str, object]:
    return {
        "committed_through_seq": producer.committed_through_seq,
        "holder": producer.holder,
        "dropped_count": producer.dropped_count,
        "updated_at": now,
    }
