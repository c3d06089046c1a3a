"""Large spaces, made by a few statements: a session by row, a record by recursive query."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from ramet_server.database.tables import metadata
from ramet_server.database.tables.session import OPEN_END, history_span, record, session, session_tag
from ramet_server.database.tables.shared import space
from ramet_server.database.tables.tree import topology_node

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
_AT_ONCE = 5000


def engine_of(url: str) -> sa.Engine:
    """An engine for a test's own statements."""
    return sa.create_engine(url.replace("mysql://", "mysql+pymysql://"), poolclass=sa.NullPool)


def session_id(number: int) -> str:
    """The id of the session made as this number, from 0; ids are in the order of the numbers."""
    return f"s{1_000_000 + number}"


def fill_sessions(connection: sa.Connection, space_id: str, count: int, *, long: int, short: int) -> None:
    """Make sessions, the first with `long` records and every other with `short` ones.

    One session is made each second, every thousandth bears the tag "rare", every one "common".
    """
    # The origins of a space begin alike, so that those of two spaces differ.
    prefix = f"{space_id[-20:]:x>20}"
    rows = [_session_row(space_id, prefix, number, long if number == 0 else short) for number in range(count)]
    tags = [
        {"space_id": space_id, "session_id": row["session_id"], "tag": tag}
        for number, row in enumerate(rows)
        for tag in (["common", "rare"] if number % 1000 == 999 else ["common"])
    ]
    _insert(connection, session, rows)
    _insert(connection, session_tag, tags)
    mine = session.c.space_id == space_id
    spans = sa.select(session.c.origin, sa.literal(1), session.c.origin, sa.literal(OPEN_END)).where(mine)
    connection.execute(sa.insert(history_span).from_select(["owner_origin", "first_seq", "origin", "last_seq"], spans))
    first = session.c.session_id == session_id(0)
    _insert_records(connection, sa.and_(mine, first), long)
    _insert_records(connection, sa.and_(mine, sa.not_(first)), short)


def _session_row(space_id: str, prefix: str, number: int, records: int) -> dict[str, Any]:
    made = EPOCH + timedelta(seconds=number)
    return {
        "space_id": space_id,
        "session_id": session_id(number),
        "origin": f"{prefix}{number:012}",
        "label": f"label {number}",
        "status": "ACTIVE",
        "turn_count": records,
        "head_seq": records,
        "floor_seq": 0,
        "max_record_bytes": 64,
        "version": 1,
        "created_at": made,
        "updated_at": made,
        "last_active_at": made,
    }


def _insert_records(connection: sa.Connection, of: sa.ColumnElement[bool], count: int) -> None:
    if connection.dialect.name == "mysql":
        # MariaDB stops at 1,000 by default, and says nothing.
        connection.execute(sa.text(f"SET SESSION max_recursive_iterations = {count + 1}"))
    numbers = sa.select(sa.literal(1).label("seq")).cte("numbers", recursive=True)
    numbers = numbers.union_all(sa.select(numbers.c.seq + 1).where(numbers.c.seq < count))
    content = sa.literal("record ").concat(sa.cast(numbers.c.seq, sa.String(12)))
    values = sa.select(
        session.c.origin, numbers.c.seq, sa.literal("USER"), content, sa.literal(16), session.c.created_at
    ).where(of)
    columns = ["origin", "seq", "role", "content", "size_bytes", "created_at"]
    connection.execute(sa.insert(record).from_select(columns, values))


def fill_chain(connection: sa.Connection, space_id: str, depth: int) -> None:
    """Make one root and below it, each the only child of the last, nodes n1, n2 and so on."""
    rows = [
        {
            "space_id": space_id,
            "node_id": f"n{number}",
            "parent_id": f"n{number - 1}" if number else None,
            "depth": number,
            "index": 0,
            "child_count": 1 if number < depth - 1 else 0,
            "label": "",
            "awaits_content": False,
            "config_version": 0,
            "version": 1,
            "created_at": EPOCH,
            "updated_at": EPOCH,
        }
        for number in range(depth)
    ]
    _insert(connection, topology_node, rows)
    connection.execute(sa.insert(space).values(space_id=space_id, root_count=1, created_at=EPOCH))


def gather_statistics(connection: sa.Connection) -> None:
    """Let the database know how large its tables are, as it does by itself after a while."""
    if connection.dialect.name == "mysql":
        names = ", ".join(f"`{table.name}`" for table in metadata.sorted_tables)
        connection.execute(sa.text(f"ANALYZE TABLE {names}")).fetchall()
    else:
        connection.execute(sa.text("ANALYZE"))


def _insert(connection: sa.Connection, table: sa.Table, rows: list[dict[str, Any]]) -> None:
    for start in range(0, len(rows), _AT_ONCE):
        connection.execute(sa.insert(table), rows[start : start + _AT_ONCE])
