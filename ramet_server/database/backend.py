"""What differs between databases while units of work run; ``sqlite`` and ``mysql`` implement it."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from sqlalchemy import Connection

from ramet_server.database.prepared import Bound, Guard, Row
from ramet_server.domain.call import Call


class Backend(Protocol):
    """What differs between dialects while units of work run."""

    drops_interrupted: bool
    """Whether an interrupted connection may still owe an error, so that it must not be used again."""

    def engine_options(self) -> dict[str, Any]:
        """Returns the dialect's keyword arguments of ``create_engine``."""
        ...

    def on_connect(self, driver: Any) -> None:
        """Sets up a new driver connection."""
        ...

    def is_usable(self, driver: Any) -> bool:
        """Tells whether a driver connection that was idle can still be used."""
        ...

    def turn(self, call: Call) -> AbstractContextManager[None]:
        """Waits for the right to write, where the dialect has but one writer."""
        ...

    def begin_write(self, connection: Connection, call: Call) -> None:
        """Opens a transaction that will write."""
        ...

    def begin_with(self, connection: Connection, call: Call, reads: Sequence[Bound]) -> list[Sequence[Row]]:
        """Opens a transaction that will write, and returns the rows of its first reads."""
        ...

    def commit_with(self, connection: Connection, changes: Sequence[Bound], reached: Callable[[], None]) -> None:
        """Runs the last statements of a transaction and commits, unless one of them fails.

        ``reached`` is called when the statements have not failed and only the COMMIT may still do.
        """
        ...

    def commit_guarded(
        self,
        connection: Connection,
        call: Call,
        guards: Sequence[Guard],
        changes: Sequence[Bound],
        reached: Callable[[], None],
    ) -> None:
        """Runs a whole transaction that reads nothing: guards first, then as ``commit_with`` does.

        Raises RowsMoved where a guard finds another value, and RowsHeld where one met a lock.
        """
        ...

    def begin_snapshot(self, connection: Connection) -> None:
        """Opens a transaction whose reads all see the same state."""
        ...

    def schema_lock(self, connection: Connection, call: Call) -> AbstractContextManager[None]:
        """Lets nobody else change the schema meanwhile, and makes the changes last at its end."""
        ...

    def forget_deleted(self, connection: Connection) -> None:
        """Removes what is kept of deleted text outside of tables, as far as a client can."""
        ...

    def interrupt(self, driver: Any, strike: int) -> None:
        """Stops the statement that runs on a driver connection, from another thread; never raises."""
        ...


class RowsHeld(Exception):
    """Says that another transaction holds a row which this one would not wait for; it never reaches a client."""


class RowsMoved(Exception):
    """Says that rows are not as a transaction took them to be, so that it did nothing; it never reaches a client."""
