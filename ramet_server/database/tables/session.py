"""Tables of session_service: sessions, their records, and what each session shows of them."""

from sqlalchemy import Column, Index, Table, UniqueConstraint

from ramet_server.database.tables.types import (
    OPEN_END,
    TABLE_OPTIONS,
    Count,
    Id,
    Label,
    LongText,
    Moment,
    Origin,
    Tag,
    UtcDateTime,
    Word,
    metadata,
)

__all__ = [
    "OPEN_END",
    "arriving_session",
    "broken_group",
    "context_slot",
    "deleted_session",
    "history_span",
    "record",
    "released_span",
    "session",
    "session_tag",
]

session = Table(
    "session",
    metadata,
    Column("space_id", Id, primary_key=True),
    Column("session_id", Id, primary_key=True),
    Column("origin", Origin, nullable=False),
    Column("label", Label, nullable=False),
    Column("status", Word, nullable=False, comment="ACTIVE or ARCHIVED"),
    Column("turn_count", Count, nullable=False),
    Column("metadata_json", LongText),
    Column("head_seq", Count, nullable=False),
    Column("floor_seq", Count, nullable=False, comment="records up to this seq are trimmed"),
    Column("max_record_bytes", Count, nullable=False, comment="size of the largest record it ever showed"),
    Column("open_group_json", LongText, comment="the tool-call group that still lacks answers"),
    Column("version", Count, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("last_active_at", UtcDateTime, nullable=False),
    UniqueConstraint("origin", name="session_origin"),
    Index("session_by_creation", "space_id", "created_at", "session_id"),
    Index("session_by_activity", "space_id", "last_active_at", "session_id"),
    Index("session_by_label", "space_id", "label", "session_id"),
    comment="One row per session; its lock orders all writes to the session.",
    **TABLE_OPTIONS,
)

session_tag = Table(
    "session_tag",
    metadata,
    Column("space_id", Id, primary_key=True),
    Column("session_id", Id, primary_key=True),
    Column("tag", Tag, primary_key=True),
    Index("session_tag_by_tag", "space_id", "tag", "session_id"),
    comment="The tags of sessions.",
    **TABLE_OPTIONS,
)

record = Table(
    "record",
    metadata,
    Column("origin", Origin, primary_key=True),
    Column("seq", Count, primary_key=True, autoincrement=False),
    Column("role", Word, nullable=False, comment="SYSTEM, USER, ASSISTANT or TOOL"),
    Column("content", LongText, nullable=False),
    Column("parts_json", LongText),
    Column("tool_calls_json", LongText),
    Column("tool_call_id", Label),
    Column("name", Label),
    Column("client_time", Moment),
    Column("metadata_json", LongText),
    Column("size_bytes", Count, nullable=False, comment="all its text, in bytes of UTF-8"),
    Column("created_at", UtcDateTime, nullable=False),
    Column("erased_at", UtcDateTime),
    comment="Records under the session incarnation that wrote them; immutable but for erasure.",
    **TABLE_OPTIONS,
)

history_span = Table(
    "history_span",
    metadata,
    Column("owner_origin", Origin, primary_key=True),
    Column("first_seq", Count, primary_key=True, autoincrement=False),
    Column("origin", Origin, nullable=False),
    Column("last_seq", Count, nullable=False, comment="2^63-1 while the span still grows"),
    Index("history_span_by_origin", "origin", "first_seq", "last_seq"),
    comment="Which records a session shows: ranges of seqs over origins, its own last.",
    **TABLE_OPTIONS,
)

broken_group = Table(
    "broken_group",
    metadata,
    Column("origin", Origin, primary_key=True),
    Column("seq", Count, primary_key=True, autoincrement=False),
    comment="Records of tool-call groups that were never completed, so that forks leave them out.",
    **TABLE_OPTIONS,
)

released_span = Table(
    "released_span",
    metadata,
    Column("owner_origin", Origin, primary_key=True),
    Column("first_seq", Count, primary_key=True, autoincrement=False),
    Column("origin", Origin, nullable=False),
    Column("last_seq", Count, nullable=False),
    Column("released_at", UtcDateTime, nullable=False),
    Index("released_span_by_age", "released_at"),
    comment="Ranges that a session, the owner, dropped; the sweep erases what no span needs.",
    **TABLE_OPTIONS,
)

context_slot = Table(
    "context_slot",
    metadata,
    Column("space_id", Id, primary_key=True),
    Column("session_id", Id, primary_key=True),
    Column("slot", Word, primary_key=True, comment="systemPrompt, insight or memory"),
    Column("content", LongText, comment="NULL is unset, which is not empty"),
    Column("version", Count, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    comment="The context slots of sessions.",
    **TABLE_OPTIONS,
)

deleted_session = Table(
    "deleted_session",
    metadata,
    Column("space_id", Id, primary_key=True),
    Column("session_id", Id, primary_key=True),
    Column("deleted_at", UtcDateTime, nullable=False),
    Index("deleted_session_by_age", "deleted_at"),
    comment="Sessions that were deleted, until the sweep has dealt with what tells of them.",
    **TABLE_OPTIONS,
)

arriving_session = Table(
    "arriving_session",
    metadata,
    Column("space_id", Id, primary_key=True),
    Column("session_id", Id, primary_key=True),
    Column("origin", Origin, nullable=False, comment="the incarnation that it will be"),
    Column("heard_at", UtcDateTime, nullable=False, comment="when the import last brought something"),
    Index("arriving_session_by_age", "heard_at"),
    comment="Sessions that an import is bringing; their spans are there, their rows come last.",
    **TABLE_OPTIONS,
)
