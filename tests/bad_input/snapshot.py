"""What a database holds, in a form that shows any change and is cheap to ask for thousands of times."""

import hashlib
from collections.abc import Callable

from sqlalchemy import Connection, inspect

Snapshot = dict[str, str]
"""By table, a text that differs when its rows do."""


def snapshots(connection: Connection) -> Callable[[], Snapshot]:
    """Returns a function that tells what each table of the database holds; the connection must commit by itself."""
    tables = [name for name in inspect(connection).get_table_names() if name != "alembic_version"]
    assert tables, "the database of the server under test has no tables"
    if connection.dialect.name == "sqlite":
        return _of_sqlite(connection, tables)
    return lambda: {
        name.rpartition(".")[2]: str(checksum)
        for name, checksum in connection.exec_driver_sql(f"CHECKSUM TABLE {', '.join(tables)}")
    }


def _of_sqlite(connection: Connection, tables: list[str]) -> Callable[[], Snapshot]:
    seen: tuple[int, Snapshot] = (-1, {})

    def snapshot() -> Snapshot:
        nonlocal seen
        # SQLite counts the commits of others that changed something, so only then are the rows read again.
        version = int(connection.exec_driver_sql("PRAGMA data_version").scalar_one())
        if version != seen[0]:
            seen = (version, {name: _hash(connection, name) for name in tables})
        return seen[1]

    return snapshot


def _hash(connection: Connection, table: str) -> str:
    rows = sorted(repr(tuple(row)) for row in connection.exec_driver_sql(f"SELECT * FROM {table}"))
    return f"{len(rows)} rows, {hashlib.sha256(chr(0).join(rows).encode()).hexdigest()}"
