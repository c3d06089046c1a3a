"""Connections that units of work lend each other without going through the pool.

To take one out of the pool of SQLAlchemy and give it back costs as much as a small statement, 110 calls of
functions. What the pool does meanwhile is done here as well: a connection that the server has closed is not
lent, no transaction stays open, and after some time the pool gets it back and decides whether it is too old.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Event
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

_LONGEST_S = 1800
"""How long one is kept from the pool."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A connection that one unit of work has at a time."""

    connection: Connection
    since: float


class KeptConnections:
    """A stack of them: the one used last is used first, so that few are in use and stay warm; for any thread."""

    def __init__(self, engine: Engine, is_usable: Callable[[Any], bool], most: int) -> None:
        """Takes what tells whether a driver's connection still is one, and how many are kept from the pool."""
        self._engine = engine
        self._most = most
        self._is_usable = is_usable
        # A list takes and gives its last item whole, whatever other threads do.
        self._idle: list[Kept] = []
        self._closed = Event()

    def take(self) -> Kept:
        """Returns a connection that is in no transaction; raises what the engine raises where there is none."""
        while self._idle:
            try:
                kept = self._idle.pop()
            except IndexError:
                break
            if time.monotonic() - kept.since > _LONGEST_S:
                kept.connection.close()
            elif self._is_usable(_driver(kept.connection)):
                return kept
            else:
                kept.connection.invalidate()
                kept.connection.close()
        return Kept(self._engine.connect(), time.monotonic())

    def give_back(self, kept: Kept) -> None:
        """Takes a connection back and ends its transaction; one that cannot do that is the pool's to give up."""
        connection = kept.connection
        if self._closed.is_set() or connection.invalidated or len(self._idle) >= self._most:
            connection.close()
            return
        try:
            # First as SQLAlchemy knows it, and then whatever was begun by statements that it has not seen.
            connection.rollback()
            _driver(connection).rollback()
        except (DBAPIError, connection.dialect.loaded_dbapi.Error):
            connection.close()
            return
        self._idle.append(kept)
        if self._closed.is_set():
            self.close()

    def close(self) -> None:
        """Gives all idle connections back to the pool; those that are lent follow when their units end."""
        self._closed.set()
        while self._idle:
            with suppress(IndexError):
                self._idle.pop().connection.close()


def _driver(connection: Connection) -> Any:
    return connection.connection.driver_connection
