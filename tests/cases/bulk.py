"""Large spaces, made by a few statements: a session by row, a record by recursive query."""

from __future__ import annotations

from datetime import UTC, datetime
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

    One session is made each second; every one bears the tag "common", every thousandth the tag "rare".
    """
    if connection.dialect.name == "mysql":
        # MariaDB stops at 1,000 by default, and says nothing.
        connection.execute(sa.text(f"SET SESSION max_recursive_iterations = {max(count, long) + 1}"))
        connection.execute(sa.text("SET SESSION time_zone = '+00:00'"))
    _insert_sessions(connection, space_id, count)
    mine = session.c.space_id == space_id
    first = session.c.session_id == session_id(0)
    # A session is made with its records' heads as they will be.
    heads = sa.case((first, long), else_=short)
    connection.execute(sa.update(session).where(mine).values(head_seq=heads, turn_count=heads))
    for tag, bears in (("common", mine), ("rare", sa.and_(mine, session.c.label.like("%999")))):
        tags = sa.select(session.c.space_id, session.c.session_id, sa.literal(tag)).where(bears)
        connection.execute(sa.insert(session_tag).from_select(["space_id", "session_id", "tag"], tags))
    spans = sa.select(session.c.origin, sa.literal(1), session.c.origin, sa.literal(OPEN_END)).where(mine)
    connection.execute(sa.insert(history_span).from_select(["owner_origin", "first_seq", "origin", "last_seq"], spans))
    _insert_records(connection, sa.and_(mine, first), long)
    _insert_records(connection, sa.and_(mine, sa.not_(first)), short)


def _insert_sessions(connection: sa.Connection, space_id: str, count: int) -> None:
    numbers = _numbers("number", 0, count - 1)
    number = numbers.c.number
    digits = sa.cast(number + 1_000_000, sa.String(12))
    seconds = number + int(EPOCH.timestamp())
    if connection.dialect.name == "mysql":
        made: sa.ColumnElement[Any] = sa.func.from_unixtime(seconds)
    else:
        # As SQLAlchemy writes it.
        made = sa.func.strftime("%Y-%m-%d %H:%M:%S.000000", seconds, "unixepoch")
    values: dict[str, Any] = {
        "space_id": sa.literal(space_id),
        "session_id": sa.literal("s").concat(digits),
        # The origins of a space begin alike, so that those of two spaces differ.
        "origin": sa.literal(f"{space_id[-25:]:x>25}").concat(digits),
        "label": sa.literal("label ").concat(sa.cast(number, sa.String(12))),
        "status": sa.literal("ACTIVE"),
        "turn_count": sa.literal(0),
        "head_seq": sa.literal(0),
        "floor_seq": sa.literal(0),
        "max_record_bytes": sa.literal(64),
        "version": sa.literal(1),
        "created_at": made,
        "updated_at": made,
        "last_active_at": made,
    }
    connection.execute(sa.insert(session).from_select(list(values), sa.select(*values.values())))


def _insert_records(connection: sa.Connection, of: sa.ColumnElement[bool], count: int) -> None:
    numbers = _numbers("seq", 1, count)
    content = sa.literal("record ").concat(sa.cast(numbers.c.seq, sa.String(12)))
    values = (
        sa.select(session.c.origin, numbers.c.seq, sa.literal("USER"), content, sa.literal(16), session.c.created_at)
        .select_from(session.join(numbers, sa.true()))
        .where(of)
    )
    columns = ["origin", "seq", "role", "content", "size_bytes", "created_at"]
    connection.execute(sa.insert(record).from_select(columns, values))


def _numbers(name: str, first: int, last: int) -> sa.CTE:
    numbers = sa.select(sa.literal(first).label(name)).cte("numbers", recursive=True)
    return numbers.union_all(sa.select(numbers.c[name] + 1).where(numbers.c[name] < last))


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
