"""${message}."""

from ramet_server.database.migrations.repeatable import create_table

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    """${message}."""
    ${upgrades if upgrades else "raise AssertionError('Say here what changes.')"}
