"""Column types that mean the same on every backend."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import CHAR, BigInteger, DateTime, Dialect, MetaData, String, Text, text
from sqlalchemy.dialects import mysql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import ColumnElement
from sqlalchemy.types import TypeDecorator, TypeEngine

metadata = MetaData()

# Never the server's defaults: a database made with latin1 must hold the same text.
TABLE_OPTIONS: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}
"""Keyword arguments of every table."""

OPEN_END = (1 << 63) - 1
"""The last seq of a span that still grows."""


def _ascii(length: int) -> TypeEngine[str]:
    # ascii_bin compares byte for byte but for spaces at the end, which no id may have.
    return String(length).with_variant(mysql.VARCHAR(length, charset="ascii", collation="ascii_bin"), "mysql")


def _text_type(length: int) -> TypeEngine[str]:
    return String(length).with_variant(mysql.VARCHAR(length, charset="utf8mb4", collation="utf8mb4_bin"), "mysql")


Id = _ascii(128)
"""An id; see ``ramet_server.domain.ids``."""

Tag = _text_type(128)
"""A tag of a session: any characters, but no space at either end, so that padding cannot matter."""

Origin = CHAR(32).with_variant(mysql.CHAR(32, charset="ascii", collation="ascii_bin"), "mysql")
"""The internal id of one incarnation of a session."""

Sha256 = CHAR(64).with_variant(mysql.CHAR(64, charset="ascii", collation="ascii_bin"), "mysql")
"""A SHA-256 in hexadecimal."""

Word = _ascii(16)
"""A word of a closed list, such as a status or a role."""

Moment = _ascii(32)
"""A client's own time as RFC 3339 text, to the nanosecond, kept as given."""

Label = _text_type(256)
"""A label, or another short text of people and models."""

LongText = Text().with_variant(mysql.LONGTEXT(charset="utf8mb4", collation="utf8mb4_bin"), "mysql")
"""Text or JSON of any length, kept byte for byte."""

Name32 = _text_type(32)
"""A short name of an agent or a flow, without spaces at either end, so that padding cannot matter."""

Name64 = _text_type(64)
"""A name of a tool, without spaces at either end."""

Word8 = _ascii(8)
"""A very short word of a closed list."""

Count = BigInteger()
"""A count, a version or a seq."""

ZERO = text("0")
"""The default of counts and flags."""


class _JsonColumn(mysql.JSON):
    """MySQL's JSON, which takes and gives the text as it is: the rules have checked it."""

    def bind_processor(self, dialect: Dialect) -> None:
        """Sends the text."""

    def result_processor(self, dialect: Dialect, coltype: object) -> None:
        """Returns the text."""


Json = Text().with_variant(_JsonColumn(), "mysql")
"""JSON that SQL can look into; equal in value to what came, not byte for byte."""


class Now(ColumnElement[datetime]):
    """The database's own time, as a column's default; with ``on_update`` it follows changes by hand, on MySQL."""

    inherit_cache = False
    type = DateTime()

    def __init__(self, *, on_update: bool = False) -> None:
        self.on_update = on_update


@compiles(Now)
def _now(_element: Now, _compiler: object, **_: object) -> str:
    return "CURRENT_TIMESTAMP"


@compiles(Now, "mysql")
def _now_mysql(element: Now, _compiler: object, **_: object) -> str:
    now = "CURRENT_TIMESTAMP(6)"
    return f"{now} ON UPDATE {now}" if element.on_update else now


class UtcDateTime(TypeDecorator[datetime]):
    """A moment of the server: aware UTC outside, DATETIME with microseconds inside."""

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Chooses the type that keeps microseconds."""
        if dialect.name == "mysql":
            return dialect.type_descriptor(mysql.DATETIME(fsp=6))
        return dialect.type_descriptor(DateTime())

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any] | None:
        """Returns what makes a parameter of a moment."""
        if dialect.name == "mysql":
            # Connections to MySQL take aware moments as they are; see ``ramet_server.database.literals``.
            return None
        process = super().bind_processor(dialect)
        # All rows of an append tell the same moment: to write it 16 times took a seventh of an append of 16 records.
        return process and lru_cache(256)(process)

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - the base class calls it so
        """Turns an aware datetime into a plain one in UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("Only aware datetimes are stored.")
        return (value if value.tzinfo is UTC else value.astimezone(UTC)).replace(tzinfo=None)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any] | None:
        """Returns what makes a moment of what the driver read."""
        # Connections to MySQL read aware moments by themselves; see ``ramet_server.database.rows``.
        return None if dialect.name == "mysql" else super().result_processor(dialect, coltype)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - the base class calls it so
        """Turns what is stored into an aware datetime."""
        return None if value is None else value.replace(tzinfo=UTC)
