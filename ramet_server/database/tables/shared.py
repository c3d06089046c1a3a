"""Tables that both services write, each its own rows."""

from sqlalchemy import Column, Index, Table

from ramet_server.database.tables.types import (
    TABLE_OPTIONS,
    ZERO,
    Count,
    Id,
    LongText,
    Sha256,
    UtcDateTime,
    Word,
    metadata,
)

space = Table(
    "space",
    metadata,
    Column("space_id", Id, primary_key=True),
    Column("root_count", Count, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("tree_position", Count, nullable=False, server_default=ZERO, comment="of its last tree_change"),
    Column("tree_floor", Count, nullable=False, server_default=ZERO, comment="changes up to here are forgotten"),
    comment="One row per space; its lock orders moves and the indexes of roots.",
    **TABLE_OPTIONS,
)

request_log = Table(
    "request_log",
    metadata,
    Column("space_id", Id, primary_key=True),
    Column("service", Word, primary_key=True),
    Column("request_id", Id, primary_key=True),
    Column("method", Id, nullable=False),
    Column("body_hash", Sha256, nullable=False),
    Column("outcome_json", LongText, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Index("request_log_by_age", "created_at"),
    comment="Requests that took effect, so that a repeated one does not again.",
    **TABLE_OPTIONS,
)
