"""The memory that open transactions may take, all together."""

from threading import Lock

from ramet_server.domain.errors import Cancelled, Overloaded

_RETRY_AFTER_S = 1.0


class Room:
    """Room for the open transactions of one server."""

    def __init__(self, size: int) -> None:
        self.size = size
        """In bytes."""
        self.taken = 0
        """In bytes."""
        self.lock = Lock()


class Share:
    """What one transaction takes of the room, until it is closed; any thread may close it."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._taken = 0
        self._closed = False

    def take(self, size: int) -> None:
        """Takes so many bytes more; raises Overloaded where all transactions together have too many."""
        with self._room.lock:
            if self._closed:
                raise Cancelled("The transaction is over.")
            if self._room.taken + size > self._room.size:
                raise Overloaded(
                    "Open transactions take all the memory that they may have.", retry_after_s=_RETRY_AFTER_S
                )
            self._room.taken += size
            self._taken += size

    def close(self) -> None:
        """Gives everything back."""
        with self._room.lock:
            self._room.taken -= self._taken
            self._taken = 0
            self._closed = True
