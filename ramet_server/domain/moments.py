"""Moments as text: RFC 3339 in UTC with microseconds, always of the same length."""

import re
from datetime import UTC, datetime

from ramet_server.domain.errors import InvalidField

_TEXT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)


def moment_text(moment: datetime) -> str:
    """Writes an aware moment."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def read_moment(text: object, field: str) -> datetime:
    """Reads what ``moment_text`` wrote; raises InvalidField for anything else."""
    if isinstance(text, str) and _TEXT.fullmatch(text):
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            pass
    raise InvalidField(f"{field} is no time as in 2026-11-30T22:00:00.000000Z.", field=field)
