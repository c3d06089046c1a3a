"""Whole rows for tests that need one and do not care what is in it."""

from datetime import UTC, datetime
from typing import Any

from ramet_server.database.tables.session import session as session_table
from ramet_server.database.tables.types import UtcDateTime
from ramet_server.domain.ids import new_origin

_MOMENT = datetime(2026, 11, 30, 21, 4, 5, 678901, tzinfo=UTC)


def session(space_id: str, session_id: str, **values: Any) -> dict[str, Any]:
    """A row of `session`; what is not given is zero, empty or the same moment."""
    row: dict[str, Any] = {"space_id": space_id, "session_id": session_id, "origin": new_origin(), "status": "ACTIVE"}
    for column in session_table.columns:
        if column.name in row or column.nullable:
            continue
        row[column.name] = _MOMENT if isinstance(column.type, UtcDateTime) else column.type.python_type()
    return row | values


def slot(space_id: str, session_id: str, content: str | None) -> dict[str, Any]:
    """A row of `context_slot`."""
    return {
        "space_id": space_id,
        "session_id": session_id,
        "slot": "memory",
        "content": content,
        "version": 1,
        "updated_at": _MOMENT,
    }
