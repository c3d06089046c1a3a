"""When a function that is run in a transaction runs again: one policy for the asyncio and the blocking client."""

import random
import time
from typing import Generic, TypeVar

from ramet.client.arguments import of_kind, refused, text
from ramet.client.calls import PATIENCE_S, new_request_id
from ramet.client.errors import AlreadyCommitted, RametError

__all__ = ["Found", "Reruns"]

T = TypeVar("T")

_FIRST_PAUSE_S = 0.01
_LONGEST_PAUSE_S = 1.0
_HELPED = frozenset({"TRANSACTION_CONFLICT", "WRITE_CONFLICT"})


class Found(Exception, Generic[T]):
    """Says that an earlier run was committed after all, and what its function returned."""

    def __init__(self, value: T) -> None:
        super().__init__()
        self.value = value


class Reruns(Generic[T]):
    """The runs of one function, all under one request id: so at most one of them takes effect."""

    def __init__(self, attempts: int, request_id: str | None, *, patience_s: float = PATIENCE_S) -> None:
        """Takes how many runs there may be, and for how many seconds a server that is away is looked for."""
        if of_kind(int, attempts, "attempts") < 1:
            raise refused("attempts", "must be 1 or more")
        self.request_id = new_request_id() if request_id is None else text(request_id, "request_id")
        self._attempts = attempts
        self._made = 0
        self._patience_s = patience_s
        self._away_since: float | None = None
        self._lost: dict[str, T] = {}
        """By transaction, what the function returned in a run whose commit may have taken effect."""

    def lost(self, transaction_id: str, value: T) -> None:
        """Notes a run whose commit was sent and not answered."""
        self._lost[transaction_id] = value

    def pause_after(self, error: RametError, *, begun: bool = True) -> float:
        """Returns how long to wait before the next run, in seconds; ``begun`` tells whether this one reached a server.

        Raises Found where the error says that an earlier run was committed, and the error itself where no run helps.
        """
        if isinstance(error, AlreadyCommitted) and error.transaction_id in self._lost:
            raise Found(self._lost[error.transaction_id]) from None
        if error.reason == "REQUEST_ID_REUSED" and self._lost:
            # Other writes stand under the id of a lost run, so that one is committed: the next begin tells.
            return _FIRST_PAUSE_S
        self._made += 1
        if self._made >= self._attempts or not (error.reason in _HELPED or error.retryable) or self._is_gone(begun):
            raise error
        pause = error.retry_after_s or min(_FIRST_PAUSE_S * 2 ** (self._made - 1), _LONGEST_PAUSE_S)
        return pause * random.uniform(0.5, 1.5)  # noqa: S311 - spreads those who collided, guards nothing

    def _is_gone(self, begun: bool) -> bool:
        """Tells whether no server was found for so long that many attempts must not make it longer."""
        if begun:
            self._away_since = None
            return False
        now = time.monotonic()
        if self._away_since is None:
            self._away_since = now
        return now - self._away_since >= self._patience_s
