"""The changes of the forest, for those who watch it."""

from alembic import op
from sqlalchemy import Column, Index

from ramet_server.database.migrations.repeatable import add_columns, create_table
from ramet_server.database.tables.types import ZERO, Count, Id, UtcDateTime, Word

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Creates the table, and lets each space count its changes."""
    create_table(
        "tree_change",
        Column("space_id", Id, primary_key=True),
        Column("position", Count, primary_key=True, autoincrement=False, comment="given under the lock of the space"),
        Column("kind", Word, nullable=False, comment="CREATED, UPDATED, MOVED or DELETED"),
        Column("node_id", Id, nullable=False),
        Column("changed_at", UtcDateTime, nullable=False),
        Index("tree_change_by_age", "changed_at"),
        comment="What became of the nodes that readers see, for some days, in the order of commits.",
    )
    add_columns(
        "space",
        Column("tree_position", Count, nullable=False, server_default=ZERO, comment="of its last tree_change"),
        Column("tree_floor", Count, nullable=False, server_default=ZERO, comment="changes up to here are forgotten"),
    )
    # What became of the nodes so far was not written down, so nobody can watch from the start of these spaces.
    op.execute("UPDATE space SET tree_position = 1, tree_floor = 1 WHERE tree_position = 0")
