"""Alembic's entry: runs the history on the connection that ``ramet_server.database.schema`` hands over."""

from alembic import context

from ramet_server.database.tables import metadata

# The lock, and on SQLite the transaction, are held by the caller on this very connection.
context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
