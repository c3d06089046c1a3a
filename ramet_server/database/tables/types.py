"""Column types that mean the same on every backend."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import CHAR, BigInteger, DateTime, Dialect, MetaData, String, Text
from sqlalchemy.dialects import mysql
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

Count = BigInteger()
"""A count, a version or a seq."""


class UtcDateTime(TypeDecorator[datetime]):
    """A moment of the server: aware UTC outside, DATETIME with microseconds inside."""

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Chooses the type that keeps microseconds."""
        if dialect.name == "mysql":
            return dialect.type_descriptor(mysql.DATETIME(fsp=6))
        return dialect.type_descriptor(DateTime())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - the base class calls it so
        """Turns an aware datetime into a plain one in UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("Only aware datetimes are stored.")
        return value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - the base class calls it so
        """Turns what is stored into an aware datetime."""
        return None if value is None else value.replace(tzinfo=UTC)
