"""What holds for every table, now and for those to come; and the DDL that MySQL 8 gets."""

from pathlib import Path

import pytest
from sqlalchemy import CHAR, Boolean, Table, Text
from sqlalchemy.dialects import mysql
from sqlalchemy.schema import CreateIndex, CreateTable
from sqlalchemy.types import BigInteger, String

from ramet_server.database.tables import metadata
from ramet_server.database.tables.types import UtcDateTime

_GOLDEN = Path(__file__).with_name("mysql_ddl.sql")
_KEY_LIMIT_BYTES = 3072
_TABLES = metadata.sorted_tables
_NUMBERED = {"diagnosis_session", "agent_step", "tool_invocation"}
"""Tables whose rows have numbers, which the service makes and no database counts."""
_names = [table.name for table in _TABLES]


def _mysql_ddl() -> str:
    dialect = mysql.dialect()
    statements: list[str] = []
    for table in sorted(_TABLES, key=lambda table: table.name):
        statements.append(str(CreateTable(table).compile(dialect=dialect)).strip().replace(", \n", ",\n"))
        indexes = sorted(table.indexes, key=lambda index: str(index.name))
        statements.extend(str(CreateIndex(index).compile(dialect=dialect)) for index in indexes)
    return "".join(f"{statement};\n" for statement in statements)


def test_the_ddl_for_mysql_is_the_one_that_was_read_and_agreed_to() -> None:
    # No MySQL 8 runs in these tests, so the text itself is held. After a change that is meant:
    # python -m tests.database.test_tables
    assert _mysql_ddl() == _GOLDEN.read_text(encoding="utf-8")


def _key_bytes(table: Table, names: list[str]) -> int:
    dialect = mysql.dialect()
    total = 0
    for name in names:
        kind = table.columns[name].type
        if isinstance(kind, String):
            told = str(kind.compile(dialect=dialect))
            assert isinstance(kind.length, int), f"{table.name}.{name} has no length"
            total += kind.length * (1 if "ascii" in told else 4) + 2
        else:
            total += 8
    return total


@pytest.mark.parametrize("table", _TABLES, ids=_names)
def test_every_key_fits(table: Table) -> None:
    keys = {"the primary key": [column.name for column in table.primary_key.columns]}
    for index in table.indexes:
        # InnoDB puts the primary key behind each index, but does not count it.
        keys[str(index.name)] = [column.name for column in index.columns]
    sizes = {name: _key_bytes(table, columns) for name, columns in keys.items()}
    assert all(size <= _KEY_LIMIT_BYTES for size in sizes.values()), sizes


@pytest.mark.parametrize("table", _TABLES, ids=_names)
def test_every_table_fits_a_cluster(table: Table) -> None:
    first = next(iter(table.primary_key.columns)).name
    assert first == "id" if table.name in _NUMBERED else first in ("space_id", "origin", "owner_origin")
    if table.name in _NUMBERED:
        assert all(next(iter(index.columns)).name == "space_id" for index in table.indexes)
    assert not table.foreign_keys
    assert not any(column.autoincrement is True for column in table.columns)
    # A BIGINT key counts by itself on MySQL unless it is told not to.
    assert table.autoincrement_column is None


@pytest.mark.parametrize("table", _TABLES, ids=_names)
def test_every_table_says_its_charset_engine_and_purpose(table: Table) -> None:
    assert table.dialect_options["mysql"]["engine"] == "InnoDB"
    assert table.dialect_options["mysql"]["charset"] == "utf8mb4"
    assert table.dialect_options["mysql"]["collate"] == "utf8mb4_bin"
    assert table.comment


@pytest.mark.parametrize("table", _TABLES, ids=_names)
def test_every_column_has_a_type_that_means_the_same_everywhere(table: Table) -> None:
    dialect = mysql.dialect()
    for column in table.columns:
        told = column.type.compile(dialect=dialect)
        if isinstance(column.type, UtcDateTime):
            assert told == "DATETIME(6)"
        elif told == "JSON":
            assert column.table.name in _NUMBERED, column
        elif isinstance(column.type, String | CHAR | Text):
            assert told.endswith(("COLLATE ascii_bin", "COLLATE utf8mb4_bin")), (column, told)
            assert "VARCHAR" in told or "CHAR(" in told or told.startswith("LONGTEXT"), (column, told)
        else:
            assert isinstance(column.type, BigInteger | Boolean), column


if __name__ == "__main__":
    _GOLDEN.write_text(_mysql_ddl(), encoding="utf-8")
