"""What a database holds, in a form that shows any change."""

import hashlib
from collections.abc import Callable

from sqlalchemy import Engine, MetaData, Table, select

# Alembic's own.
_NOT_OURS = frozenset({"alembic_version"})


def snapshots(engine: Engine) -> Callable[[], dict[str, str]]:
    """Returns a function that tells, for each table of the database, its row count and a hash of its rows."""
    metadata = MetaData()
    metadata.reflect(engine)
    tables = [table for table in metadata.sorted_tables if table.name not in _NOT_OURS]
    assert tables, "the database of the server under test has no tables"

    def snapshot() -> dict[str, str]:
        return {table.name: _fingerprint(engine, table) for table in tables}

    return snapshot


def _fingerprint(engine: Engine, table: Table) -> str:
    with engine.connect() as connection:
        rows = sorted(repr(tuple(row)) for row in connection.execute(select(table)))
    return f"{len(rows)} rows, {hashlib.sha256(chr(0).join(rows).encode()).hexdigest()}"
