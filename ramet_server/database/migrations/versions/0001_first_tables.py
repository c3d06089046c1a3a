"""The first tables: spaces, sessions, the forest, and the log of requests."""

from sqlalchemy import Boolean, Column, Index, UniqueConstraint

from ramet_server.database.migrations.repeatable import create_table, create_view
from ramet_server.database.tables.types import (
    Count,
    Id,
    Label,
    LongText,
    Moment,
    Origin,
    Sha256,
    Tag,
    UtcDateTime,
    Word,
)

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Creates every table, and the view through which the tree reads sessions."""
    create_table(
        "space",
        Column("space_id", Id, primary_key=True),
        Column("root_count", Count, nullable=False),
        Column("created_at", UtcDateTime, nullable=False),
        comment="One row per space; its lock orders moves and the indexes of roots.",
    )
    create_table(
        "request_log",
        Column("space_id", Id, primary_key=True),
        Column("service", Word, primary_key=True),
        Column("request_id", Id, primary_key=True),
        Column("method", Id, nullable=False),
        Column("body_hash", Sha256, nullable=False),
        Column("outcome_json", LongText, nullable=False),
        Column("created_at", UtcDateTime, nullable=False),
        Index("request_log_by_age", "created_at"),
        comment="Requests that took effect, so that a repeated one does not again.",
    )
    create_table(
        "session",
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
    )
    create_table(
        "session_tag",
        Column("space_id", Id, primary_key=True),
        Column("session_id", Id, primary_key=True),
        Column("tag", Tag, primary_key=True),
        Index("session_tag_by_tag", "space_id", "tag", "session_id"),
        comment="The tags of sessions.",
    )
    create_table(
        "record",
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
    )
    create_table(
        "history_span",
        Column("owner_origin", Origin, primary_key=True),
        Column("first_seq", Count, primary_key=True, autoincrement=False),
        Column("origin", Origin, nullable=False),
        Column("last_seq", Count, nullable=False, comment="2^63-1 while the span still grows"),
        Index("history_span_by_origin", "origin", "first_seq", "last_seq"),
        comment="Which records a session shows: ranges of seqs over origins, its own last.",
    )
    create_table(
        "broken_group",
        Column("origin", Origin, primary_key=True),
        Column("seq", Count, primary_key=True, autoincrement=False),
        comment="Records of tool-call groups that were never completed, so that forks leave them out.",
    )
    create_table(
        "released_span",
        Column("owner_origin", Origin, primary_key=True),
        Column("first_seq", Count, primary_key=True, autoincrement=False),
        Column("origin", Origin, nullable=False),
        Column("last_seq", Count, nullable=False),
        Column("released_at", UtcDateTime, nullable=False),
        Index("released_span_by_age", "released_at"),
        comment="Ranges that a session, the owner, dropped; the sweep erases what no span needs.",
    )
    create_table(
        "context_slot",
        Column("space_id", Id, primary_key=True),
        Column("session_id", Id, primary_key=True),
        Column("slot", Word, primary_key=True, comment="systemPrompt, insight or memory"),
        Column("content", LongText, comment="NULL is unset, which is not empty"),
        Column("version", Count, nullable=False),
        Column("updated_at", UtcDateTime, nullable=False),
        comment="The context slots of sessions.",
    )
    create_table(
        "topology_node",
        Column("space_id", Id, primary_key=True),
        Column("node_id", Id, primary_key=True),
        Column("parent_id", Id, comment="NULL for a root"),
        Column("depth", Count, nullable=False),
        Column("index", Count, nullable=False, comment="place among its siblings, from 0"),
        Column("child_count", Count, nullable=False),
        Column("label", Label, nullable=False),
        Column("source_session_id", Id),
        Column("awaits_content", Boolean, nullable=False, comment="hidden until its session exists"),
        Column("config_version", Count, nullable=False),
        Column("version", Count, nullable=False),
        Column("created_at", UtcDateTime, nullable=False),
        Column("updated_at", UtcDateTime, nullable=False),
        Column("config_system_prompt", LongText, comment="NULL is absent, which is not empty"),
        Column("config_skills_json", LongText, comment="NULL is absent, which is not an empty list"),
        Index("topology_node_by_parent", "space_id", "parent_id", "index", "node_id"),
        Index("topology_node_by_depth", "space_id", "depth", "parent_id", "index"),
        Index("topology_node_by_source", "space_id", "source_session_id", "node_id"),
        Index("topology_node_by_waiting", "awaits_content", "space_id", "parent_id", "created_at"),
        comment="One row per node of the forest.",
    )
    create_table(
        "node_ref",
        Column("space_id", Id, primary_key=True),
        Column("node_id", Id, primary_key=True),
        Column("target_id", Id, primary_key=True),
        Column("created_at", UtcDateTime, nullable=False),
        Index("node_ref_by_target", "space_id", "target_id", "node_id"),
        comment="References across the forest, beside parent and child.",
    )
    create_table(
        "session_removal",
        Column("space_id", Id, primary_key=True),
        Column("session_id", Id, primary_key=True),
        Column("origin", Origin, comment="the incarnation that goes; NULL if there was none"),
        Column("requested_at", UtcDateTime, nullable=False),
        Index("session_removal_by_age", "requested_at"),
        comment="Sessions that go with their deleted nodes; the sweep finishes each.",
    )
    create_view("session_summary", "SELECT space_id, session_id, origin, status, turn_count FROM session")
