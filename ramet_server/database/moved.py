"""What transactions move, told within this process as soon as they are committed.

Stores note topics as they write. Whoever watches one looks at once, instead of at its next turn; of what
other processes commit, and of commits whose outcome is unknown, only that turn tells.
"""

from collections.abc import Callable, Collection

from sqlalchemy import Connection

_NOTES = "ramet_moved"

Topic = tuple[str, str]
"""What moved: a kind, and a key within it."""

Listener = Callable[[str], None]
"""Takes a key; runs on the thread that committed, so it must neither block nor raise."""


def note(connection: Connection, kind: str, *keys: str) -> None:
    """Notes that topics move if this transaction is committed."""
    connection.info.setdefault(_NOTES, set()).update([(kind, key) for key in keys])


def forget(connection: Connection) -> None:
    """Drops the notes of a transaction that is only beginning, or that came to nothing."""
    connection.info.pop(_NOTES, None)


def taken(connection: Connection) -> Collection[Topic]:
    """Returns the notes of a transaction, and drops them."""
    notes: Collection[Topic] = connection.info.pop(_NOTES, ())
    return notes


class Moved:
    """Those who wish to know what moves."""

    def __init__(self) -> None:
        self._listeners: dict[str, list[Listener]] = {}

    def listen(self, kind: str, listener: Listener) -> None:
        """Adds a listener for topics of a kind, for good."""
        self._listeners.setdefault(kind, []).append(listener)

    def tell(self, topics: Collection[Topic]) -> None:
        """Tells of topics that were committed."""
        for kind, key in topics:
            for listener in self._listeners.get(kind, ()):
                listener(key)
