"""The SQL of the log that makes requests take effect once."""

import json
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from ramet_server.database.faults import is_duplicate
from ramet_server.database.prepared import Prepared
from ramet_server.database.tables.shared import request_log
from ramet_server.domain.clock import Clock
from ramet_server.domain.idempotency import DuplicateRequest, LoggedRequest, Mutation, Outcome

_DELETES_AT_ONCE = 100

_KEY_COLUMNS = ("space_id", "service", "request_id")
_INSERT = insert(request_log)

INSERT_LOGGED = Prepared(_INSERT, columns=[column.name for column in request_log.columns])
"""Remembers mutations, as ``log_row`` makes them; a taken key fails the whole statement."""


_outcome_text = json.JSONEncoder(separators=(",", ":")).encode


def log_row(space: str, service: str, mutation: Mutation, outcome: Outcome, now: datetime) -> Mapping[str, object]:
    """Returns the row that remembers a mutation that has a request_id."""
    return {
        "space_id": space,
        "service": service,
        "request_id": mutation.request_id,
        "method": mutation.method,
        "body_hash": mutation.body_hash,
        "outcome_json": _outcome_text(outcome),
        "created_at": now,
    }


class SqlRequestLog:
    """The requests of one service in one space; implements ``domain.idempotency.RequestLog``."""

    def __init__(self, connection: Connection, space: str, service: str, clock: Clock, hours: int) -> None:
        self._connection = connection
        self._space = space
        self._service = service
        self._clock = clock
        self._kept_for = timedelta(hours=hours)

    def find(self, request_id: str) -> LoggedRequest | None:
        """Returns the request if it took effect and is still remembered."""
        row = self._connection.execute(
            select(request_log.c.method, request_log.c.body_hash, request_log.c.outcome_json).where(
                self._key(request_id), request_log.c.created_at > self._clock.now() - self._kept_for
            )
        ).one_or_none()
        if row is None:
            return None
        outcome: Outcome = json.loads(row.outcome_json)
        return LoggedRequest(row.method, row.body_hash, outcome)

    def put(self, mutation: Mutation, outcome: Outcome) -> None:
        """Remembers the mutation; raises DuplicateRequest where its id is remembered already."""
        if mutation.request_id is None:
            return
        now = self._clock.now()
        row = log_row(self._space, self._service, mutation, outcome, now)
        values = {name: value for name, value in row.items() if name not in _KEY_COLUMNS}
        try:
            self._connection.execute(_INSERT, row)
        except IntegrityError as error:
            if not is_duplicate(error):
                raise
            # The row may have expired without being swept yet; then its id is free.
            renewed = self._connection.execute(
                update(request_log)
                .where(self._key(mutation.request_id), request_log.c.created_at <= now - self._kept_for)
                .values(**values)
            )
            if renewed.rowcount == 0:
                raise DuplicateRequest from error

    def _key(self, request_id: str) -> ColumnElement[bool]:
        return and_(
            request_log.c.space_id == self._space,
            request_log.c.service == self._service,
            request_log.c.request_id == request_id,
        )


def logged_ids(connection: Connection, space: str, service: str, request_ids: Collection[str]) -> set[str]:
    """Returns those of the ids that have a row, expired or not."""
    query = select(request_log.c.request_id).where(
        request_log.c.space_id == space,
        request_log.c.service == service,
        request_log.c.request_id.in_(sorted(request_ids)),
    )
    return set(connection.execute(query).scalars())


def purge_expired(connection: Connection, before: datetime, limit: int) -> int:
    """Deletes at most ``limit`` rows logged at ``before`` or earlier, oldest first; returns how many."""
    key = (request_log.c.space_id, request_log.c.service, request_log.c.request_id)
    old = request_log.c.created_at <= before
    # Read first, so that the deletes lock rows by their primary key only. A row may be renewed between.
    rows = connection.execute(select(*key).where(old).order_by(request_log.c.created_at).limit(limit)).all()
    deleted = 0
    for start in range(0, len(rows), _DELETES_AT_ONCE):
        # One OR per row, because SQLite scans the whole table for a list of row values.
        keys = [
            and_(*(column == part for column, part in zip(key, row, strict=True)))
            for row in rows[start : start + _DELETES_AT_ONCE]
        ]
        deleted += connection.execute(delete(request_log).where(or_(*keys), old)).rowcount
    return deleted
