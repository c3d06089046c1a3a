"""What a call costs the database, in numbers that do not depend on how busy the machine is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

_STRIDE = 100


@contextmanager
def statements_of(table: str) -> Iterator[list[tuple[str, Any]]]:
    """Collects the statements, with their parameters, that touch this table from any engine of this process."""
    seen: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool) -> None:
        if table in statement:
            seen.append((statement, parameters))

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)


def work_of(connection: sa.Connection, statement: str, parameters: Any) -> int:
    """Run a statement again and tell what it took.

    MariaDB tells the rows of tables and indexes that it looked at; SQLite the steps of its virtual machine, of which a
    row that is only passed by takes about three, and one that is read some thirty.
    """
    if connection.dialect.name == "mysql":
        connection.exec_driver_sql("FLUSH STATUS")
        connection.exec_driver_sql(statement, parameters).fetchall()
        found = connection.exec_driver_sql("SHOW SESSION STATUS LIKE 'Handler_read%%'").fetchall()
        return sum(int(value) for _, value in found)
    raw: Any = connection.connection.driver_connection
    strides = 0

    def count() -> int:
        nonlocal strides
        strides += 1
        return 0

    raw.set_progress_handler(count, _STRIDE)
    try:
        connection.exec_driver_sql(statement, parameters).fetchall()
    finally:
        raw.set_progress_handler(None, 0)
    return strides * _STRIDE
