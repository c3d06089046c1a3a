"""Tables of telemetry: diagnoses, their steps and tool calls, and what ingest keeps beside them.

The first three have the columns, types, defaults and index names that their users know from before;
what was added are spaces, the clients' own keys, and wider types. Their ``id`` is made by the
service: milliseconds, then chance. ``merged_from`` tells which events the row's fields come from.
Long texts stand last: SQLite walks through their pages to reach the columns behind them.
"""

from typing import Any

from sqlalchemy import Boolean, Column, Index, Table, UniqueConstraint, text

from ramet_server.database.tables.types import (
    TABLE_OPTIONS,
    ZERO,
    Count,
    Id,
    Json,
    Label,
    LongText,
    Name32,
    Name64,
    Now,
    Sha256,
    UtcDateTime,
    Word,
    Word8,
    metadata,
)


def _row_id() -> Column[Any]:
    return Column("id", Count, primary_key=True, autoincrement=False)


diagnosis_session = Table(
    "diagnosis_session",
    metadata,
    _row_id(),
    Column("space_id", Id, nullable=False),
    Column("session_id", Id, nullable=False),
    Column("status", Word, nullable=False, server_default=text("'PENDING'"), comment="never ABANDONED: that is shown"),
    Column("agent_flow", Name32, comment="such as CHAT or AI_OPS"),
    Column("conversation_id", Id, comment="the session whose conversation it belongs to"),
    Column("total_duration_ms", Count, comment="wall clock"),
    Column("duration_flagged", Boolean, nullable=False, server_default=ZERO, comment="it ended before it started"),
    Column("total_token_count", Count, comment="of its own steps; NULL where none tells"),
    Column("steps_with_tokens", Count, nullable=False, server_default=ZERO),
    Column("total_cost_micros", Count, comment="in millionths of a US dollar"),
    Column("step_count", Count, nullable=False, server_default=ZERO),
    Column("tool_call_count", Count, nullable=False, server_default=ZERO),
    Column("confidence", Count, comment="0 to 100, copied from self_evaluation"),
    Column("feedback", Word, comment="useful, not_useful; the latest of all sources"),
    Column("started_at", UtcDateTime),
    Column("ended_at", UtcDateTime),
    Column("last_heard_at", UtcDateTime, nullable=False, comment="the server's time of its last event"),
    Column("created_at", UtcDateTime, nullable=False, server_default=Now()),
    Column("updated_at", UtcDateTime, nullable=False, server_default=Now(on_update=True)),
    Column("merged_from", LongText),
    Column("error_message", LongText),
    Column("self_evaluation", Json),
    Column("query", LongText, nullable=False),
    UniqueConstraint("space_id", "session_id", name="diagnosis_session_key"),
    Index("idx_created_at", "space_id", "created_at", "id"),
    Index("idx_status", "space_id", "status", "created_at", "id"),
    Index("idx_agent_flow", "space_id", "agent_flow", "created_at", "id"),
    Index("diagnosis_session_by_conversation", "space_id", "conversation_id", "created_at", "id"),
    Index("diagnosis_session_by_feedback", "space_id", "feedback", "created_at", "id"),
    Index("diagnosis_session_by_change", "space_id", "updated_at", "id"),
    comment="One row per diagnosis; its lock orders all that is merged into it.",
    **TABLE_OPTIONS,
)

agent_step = Table(
    "agent_step",
    metadata,
    _row_id(),
    Column("space_id", Id, nullable=False),
    Column("session_id", Id, nullable=False),
    Column("step_key", Id, nullable=False, comment="the client's id of the step"),
    Column("parent_step_key", Id, comment="the step that it runs under"),
    Column("step_index", Count, nullable=False, comment="from 0, over all agents of the diagnosis"),
    Column("agent_name", Name32, nullable=False),
    Column("status", Word, nullable=False, server_default=text("'PENDING'"), comment="never ABANDONED: that is shown"),
    Column("has_tool_call", Boolean, nullable=False, server_default=ZERO),
    Column("duration_ms", Count),
    Column("duration_flagged", Boolean, nullable=False, server_default=ZERO, comment="it was impossible as given"),
    Column("token_count", Count, comment="NULL where the model did not tell"),
    Column("input_tokens", Count, comment="the cached ones among them"),
    Column("cached_tokens", Count),
    Column("output_tokens", Count),
    Column("cost_micros", Count, comment="in millionths of a US dollar"),
    Column("model", Label),
    Column("provider", Label),
    Column("started_at", UtcDateTime),
    Column("ended_at", UtcDateTime),
    Column("created_at", UtcDateTime, nullable=False, server_default=Now()),
    Column("updated_at", UtcDateTime, nullable=False, server_default=Now(on_update=True)),
    Column("merged_from", LongText),
    Column("error_message", LongText),
    Column("thought", LongText),
    Column("model_input", Json, comment="a summary, not the whole messages"),
    Column("model_output", Json, comment="a summary, not the whole message"),
    UniqueConstraint("space_id", "session_id", "step_key", name="agent_step_key"),
    Index("idx_session_step", "space_id", "session_id", "step_index", "id"),
    Index("idx_agent_name", "space_id", "agent_name", "created_at"),
    Index("agent_step_by_creation", "space_id", "created_at", "id"),
    Index("agent_step_by_change", "space_id", "updated_at", "id"),
    comment="The steps of diagnoses: each one call of a model by one agent.",
    **TABLE_OPTIONS,
)

tool_invocation = Table(
    "tool_invocation",
    metadata,
    _row_id(),
    Column("space_id", Id, nullable=False),
    Column("session_id", Id, nullable=False),
    Column("invocation_key", Id, nullable=False, comment="the client's id of the tool call"),
    Column("step_id", Count, comment="agent_step.id, once that step has come"),
    Column("step_key", Id, comment="the step that made it"),
    Column("tool_name", Name64, nullable=False),
    Column("output_length", Count, comment="characters of the whole output"),
    Column("retrieval_layer", Word8, comment="L0, L1 or L0+L1"),
    Column("l0_match_count", Count),
    Column("l1_match_count", Count),
    Column("is_truncated", Boolean, nullable=False, server_default=ZERO),
    Column("duration_ms", Count),
    Column("duration_flagged", Boolean, nullable=False, server_default=ZERO, comment="it was impossible as given"),
    Column("success", Boolean, nullable=False, server_default=text("1")),
    Column("started_at", UtcDateTime),
    Column("ended_at", UtcDateTime),
    Column("created_at", UtcDateTime, nullable=False, server_default=Now()),
    Column("updated_at", UtcDateTime, nullable=False, server_default=Now(on_update=True)),
    Column("merged_from", LongText),
    Column("error_message", LongText),
    Column("output_preview", LongText, comment="the first 500 characters"),
    Column("retrieval_details", Json),
    Column("input_params", Json, nullable=False),
    UniqueConstraint("space_id", "session_id", "invocation_key", name="tool_invocation_key"),
    Index("idx_session_id", "space_id", "session_id", "created_at", "id"),
    Index("tool_invocation_by_step", "space_id", "session_id", "step_key"),
    Index("idx_tool_name", "space_id", "tool_name", "created_at", "id"),
    Index("idx_retrieval_layer", "space_id", "retrieval_layer", "created_at", "id"),
    Index("tool_invocation_by_creation", "space_id", "created_at", "id"),
    Index("tool_invocation_by_change", "space_id", "updated_at", "id"),
    comment="The tool calls of diagnoses.",
    **TABLE_OPTIONS,
)

diagnosis_feedback = Table(
    "diagnosis_feedback",
    metadata,
    Column("space_id", Id, primary_key=True),
    Column("session_id", Id, primary_key=True),
    Column("source", Id, primary_key=True),
    Column("value", Word, nullable=False, comment="useful or not_useful"),
    Column("updated_at", UtcDateTime, nullable=False, comment="when it was said"),
    Column("event_id", Id, nullable=False, comment="of two words of one moment, the greater one stands"),
    Column("comment", LongText, nullable=False),
    comment="What each source says of a diagnosis.",
    **TABLE_OPTIONS,
)

telemetry_producer = Table(
    "telemetry_producer",
    metadata,
    Column("space_id", Id, primary_key=True),
    Column("producer_id", Id, primary_key=True),
    Column("committed_through_seq", Count, nullable=False, server_default=ZERO),
    Column("holder", Id, nullable=False, comment="the newest stream of the producer"),
    Column("dropped_count", Count, nullable=False, server_default=ZERO, comment="events that the producer gave up"),
    Column("updated_at", UtcDateTime, nullable=False),
    Index("telemetry_producer_by_age", "updated_at"),
    comment="How far each producer's events are committed.",
    **TABLE_OPTIONS,
)

telemetry_event = Table(
    "telemetry_event",
    metadata,
    Column("space_id", Id, primary_key=True),
    Column("event_id", Id, primary_key=True),
    Column("body_hash", Sha256, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Index("telemetry_event_by_age", "created_at"),
    comment="Events that were taken, to tell a repeated one from another under its id.",
    **TABLE_OPTIONS,
)
