"""Tables of tree_service: the forest's shape and each node's frozen config."""

from sqlalchemy import Boolean, Column, Index, Table, column, table

from ramet_server.database.tables.types import (
    TABLE_OPTIONS,
    Count,
    Id,
    Label,
    LongText,
    Origin,
    UtcDateTime,
    Word,
    metadata,
)

topology_node = Table(
    "topology_node",
    metadata,
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
    # Last: SQLite walks through the pages of a long value to reach the columns behind it.
    Column("config_system_prompt", LongText, comment="NULL is absent, which is not empty"),
    Column("config_skills_json", LongText, comment="NULL is absent, which is not an empty list"),
    Index("topology_node_by_parent", "space_id", "parent_id", "index", "node_id"),
    Index("topology_node_by_depth", "space_id", "depth", "parent_id", "index"),
    Index("topology_node_by_source", "space_id", "source_session_id", "node_id"),
    # For the sweep, and for telling how many of a node's children are hidden.
    Index("topology_node_by_waiting", "awaits_content", "space_id", "parent_id", "created_at"),
    comment="One row per node of the forest.",
    **TABLE_OPTIONS,
)

node_ref = Table(
    "node_ref",
    metadata,
    Column("space_id", Id, primary_key=True),
    Column("node_id", Id, primary_key=True),
    Column("target_id", Id, primary_key=True),
    Column("created_at", UtcDateTime, nullable=False),
    # With the node, or SQLite would rather read the primary key from end to end.
    Index("node_ref_by_target", "space_id", "target_id", "node_id"),
    comment="References across the forest, beside parent and child.",
    **TABLE_OPTIONS,
)

session_removal = Table(
    "session_removal",
    metadata,
    Column("space_id", Id, primary_key=True),
    Column("session_id", Id, primary_key=True),
    Column("origin", Origin, comment="the incarnation that goes; NULL if there was none"),
    Column("requested_at", UtcDateTime, nullable=False),
    Index("session_removal_by_age", "requested_at"),
    comment="Sessions that go with their deleted nodes; the sweep finishes each.",
    **TABLE_OPTIONS,
)

swept_node = Table(
    "swept_node",
    metadata,
    Column("space_id", Id, primary_key=True),
    Column("node_id", Id, primary_key=True),
    Column("parent_id", Id, comment="where it stood; NULL for a root"),
    Column("label", Label, nullable=False),
    Column("source_session_id", Id),
    Column("config_version", Count, nullable=False),
    Column("version", Count, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("swept_at", UtcDateTime, nullable=False),
    Column("config_system_prompt", LongText),
    Column("config_skills_json", LongText),
    Index("swept_node_by_age", "swept_at"),
    comment="Nodes whose content never came, for some days: if it comes after all, they come back.",
    **TABLE_OPTIONS,
)

tree_change = Table(
    "tree_change",
    metadata,
    Column("space_id", Id, primary_key=True),
    Column("position", Count, primary_key=True, autoincrement=False, comment="given under the lock of the space"),
    Column("kind", Word, nullable=False, comment="CREATED, UPDATED, MOVED or DELETED"),
    Column("node_id", Id, nullable=False),
    Column("changed_at", UtcDateTime, nullable=False),
    Index("tree_change_by_age", "changed_at"),
    comment="What became of the nodes that readers see, for some days, in the order of commits.",
    **TABLE_OPTIONS,
)

# A view over `session`, made by the first migration: all that the tree may read of sessions.
session_summary = table(
    "session_summary",
    column("space_id", Id),
    column("session_id", Id),
    column("origin", Origin),
    column("status", Word),
    column("turn_count", Count),
)
