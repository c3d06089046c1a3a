"""The server's clock, as a thing that tests can replace."""

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the server's time."""

    def now(self) -> datetime:
        """Returns the moment as an aware UTC datetime with microseconds."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """Returns the moment as an aware UTC datetime with microseconds."""
        return datetime.now(UTC)
