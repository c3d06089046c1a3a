"""Sessions that an import is bringing, so that it can go on after it was stopped."""

from sqlalchemy import Column, Index

from ramet_server.database.migrations.repeatable import create_table
from ramet_server.database.tables.types import Id, Origin, UtcDateTime

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Creates the table."""
    create_table(
        "arriving_session",
        Column("space_id", Id, primary_key=True),
        Column("session_id", Id, primary_key=True),
        Column("origin", Origin, nullable=False, comment="the incarnation that it will be"),
        Column("heard_at", UtcDateTime, nullable=False, comment="when the import last brought something"),
        Index("arriving_session_by_age", "heard_at"),
        comment="Sessions that an import is bringing; their spans are there, their rows come last.",
    )
