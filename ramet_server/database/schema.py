"""The schema's revision: what the database has, what this server needs, and the way from one to the other."""

import logging
import threading
from enum import Enum
from functools import cache
from importlib.resources import files

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from ramet_server.database import migrations
from ramet_server.database.database import Database
from ramet_server.database.faults import translated
from ramet_server.database.tables import metadata
from ramet_server.domain.call import Call
from ramet_server.domain.errors import SchemaMismatch

_log = logging.getLogger(__name__)

# Alembic keeps its context in a global variable.
_one_at_a_time = threading.Lock()


class SchemaState(Enum):
    """How the database's schema stands to this server's."""

    EMPTY = "empty"
    CURRENT = "current"
    OLDER = "older"
    NEWER = "newer"
    HALF_MADE = "half made"
    """Some tables are there, but no revision: the first set-up is running, or was cut."""


def head() -> str:
    """Returns the revision that this server needs."""
    revision = _history().get_current_head()
    if revision is None:
        raise AssertionError("The history has no revision.")
    return revision


def state(database: Database, call: Call) -> SchemaState:
    """Returns how the database's schema stands to this server's."""
    return database.read(call, lambda connection: _state(connection)[0])


def prepare(database: Database, call: Call) -> None:
    """Sets up an empty database, and refuses one of another revision with what to do about it.

    Any number of servers may do this at once: one sets up, the others wait for it.
    """
    found, revision = database.read(call, _state)
    if found is SchemaState.OLDER:
        # Revisions commit one by one, so a set-up that runs in another server passes through older ones.
        found, revision = _state_at_rest(database, call)
    if found in (SchemaState.EMPTY, SchemaState.HALF_MADE):
        upgrade(database, call)
    elif found is SchemaState.OLDER:
        raise SchemaMismatch(
            f"The database is at schema revision {revision} and this server needs {head()}: "
            "back it up, then run `ramet-server migrate`.",
            details={"revision": revision or "", "needed": head()},
        )
    elif found is SchemaState.NEWER:
        raise _newer(revision)


def upgrade(database: Database, call: Call) -> tuple[str | None, str]:
    """Brings the schema to this server's revision, alone, and returns the revisions before and after.

    Raises SchemaMismatch where the database is newer, or holds tables of others under our names.
    """
    backend = database.backend
    with _one_at_a_time, translated(), backend.turn(call), database.engine.connect() as connection:
        with backend.schema_lock(connection, call):
            # Only now, because another server may have done the work while this one waited.
            found, revision = _state(connection)
            if found is SchemaState.NEWER:
                raise _newer(revision)
            if found is not SchemaState.CURRENT:
                _refuse_foreign_tables(connection, found)
                _log.info("Upgrading the schema from revision %s to %s", revision or "none", head())
                config = _config()
                config.attributes["connection"] = connection
                command.upgrade(config, "head")
        return revision, head()


def _state_at_rest(database: Database, call: Call) -> tuple[SchemaState, str | None]:
    """Returns the state while nobody changes the schema, having waited for whoever did."""
    backend = database.backend
    with (
        translated(),
        backend.turn(call),
        database.engine.connect() as connection,
        backend.schema_lock(connection, call),
    ):
        return _state(connection)


def _state(connection: Connection) -> tuple[SchemaState, str | None]:
    """Returns the state, and the revision where there is one."""
    revisions = MigrationContext.configure(connection).get_current_heads()
    if not revisions:
        present = set(inspect(connection).get_table_names()) & set(metadata.tables)
        return (SchemaState.HALF_MADE if present else SchemaState.EMPTY), None
    revision = ", ".join(revisions)
    if revisions == (head(),):
        return SchemaState.CURRENT, revision
    known = {script.revision for script in _history().walk_revisions()}
    return (SchemaState.OLDER if known.issuperset(revisions) else SchemaState.NEWER), revision


def _refuse_foreign_tables(connection: Connection, found: SchemaState) -> None:
    """Keeps the first set-up from taking over tables that another product made."""
    if found is not SchemaState.HALF_MADE:
        return
    inspector = inspect(connection)
    for name in sorted(set(inspector.get_table_names()) & set(metadata.tables)):
        present = {column["name"] for column in inspector.get_columns(name)}
        # Those with a default may have come with a later revision.
        first = {column.name for column in metadata.tables[name].columns if column.server_default is None}
        if not present.issuperset(first):
            raise SchemaMismatch(
                f"The database holds a table {name} that is not Ramet's: give Ramet a database of its own."
            )


def _newer(revision: str | None) -> SchemaMismatch:
    return SchemaMismatch(
        f"The database is at schema revision {revision}, which is newer than this server: upgrade the server.",
        details={"revision": revision or "", "needed": head()},
    )


def _config() -> Config:
    config = Config()
    # A percent sign would begin an interpolation.
    config.set_main_option("script_location", str(files(migrations)).replace("%", "%%"))
    return config


@cache
def _history() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())
