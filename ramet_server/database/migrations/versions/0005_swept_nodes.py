"""Nodes that were swept while they awaited their content, so that they come back if it comes after all."""

from sqlalchemy import Column, Index

from ramet_server.database.migrations.repeatable import create_table
from ramet_server.database.tables.types import Count, Id, Label, LongText, UtcDateTime

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Creates the table."""
    create_table(
        "swept_node",
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
    )
