"""DDL that does nothing where it was done before."""

from typing import Any

from alembic import op
from sqlalchemy import Column, Constraint, Index, inspect

from ramet_server.database.tables.types import TABLE_OPTIONS


def create_table(name: str, *items: Column[Any] | Constraint | Index, comment: str) -> None:
    """Creates a table under the options of all tables, and those of its indexes that are missing."""
    op.create_table(
        name,
        *(item for item in items if not isinstance(item, Index)),
        comment=comment,
        if_not_exists=True,
        **TABLE_OPTIONS,
    )
    # MySQL has no CREATE INDEX IF NOT EXISTS.
    present = {index["name"] for index in inspect(op.get_bind()).get_indexes(name)}
    for index in items:
        if isinstance(index, Index) and index.name not in present:
            op.create_index(index.name, name, [str(column) for column in index.expressions])


def add_columns(table: str, *columns: Column[Any]) -> None:
    """Adds those columns that are missing; each has a default, for the rows that are there."""
    # MySQL has no ADD COLUMN IF NOT EXISTS.
    present = {column["name"] for column in inspect(op.get_bind()).get_columns(table)}
    for column in columns:
        if column.name not in present:
            op.add_column(table, column)


def create_view(name: str, select: str) -> None:
    """Creates a view, in place of an older one of its name."""
    # A view outlives the account that made it only if it runs with the rights of whoever reads it.
    rights = "SQL SECURITY INVOKER " if op.get_bind().dialect.name == "mysql" else ""
    op.execute(f"DROP VIEW IF EXISTS {name}")
    op.execute(f"CREATE {rights}VIEW {name} AS {select}")
