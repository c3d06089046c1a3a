"""Numbers of rows: milliseconds, then chance."""

import secrets
import threading
from datetime import UTC, datetime, timedelta

_RANDOM_BITS = 22
_FIRST = datetime(2024, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class RowIds:
    """Makes numbers that grow with time and fit a BIGINT until 2093.

    One process never makes a number twice. Two may by chance make the same one; then the database refuses
    the second, and its batch runs again with new numbers.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._last = 0

    def take(self, now: datetime) -> int:
        """Returns a new number, greater than those before it."""
        fresh = ((now - _FIRST) // _MILLISECOND) << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
        with self._guard:
            # Rows of one moment stand together; only the first of them is left to chance.
            same_moment = fresh >> _RANDOM_BITS <= self._last >> _RANDOM_BITS
            self._last = self._last + 1 if same_moment else fresh
            return self._last
