"""A transaction that stays open while a test looks at what others do meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import pytest

from ramet_server.database.database import Database
from ramet_server.domain.call import Call

_PATIENCE_S = 60


class _Enough(Exception):
    pass


@contextmanager
def holding(database: Database, statement: Any) -> Iterator[None]:
    """Runs a statement in a transaction, which stays open for the block and is then rolled back."""
    begun, go_on = Event(), Event()

    def hold(connection: Any) -> None:
        connection.execute(statement)
        begun.set()
        assert go_on.wait(_PATIENCE_S)
        raise _Enough

    def run() -> None:
        with pytest.raises(_Enough):
            database.write(Call(""), hold)

    thread = Thread(target=run)
    thread.start()
    try:
        assert begun.wait(_PATIENCE_S)
        yield
    finally:
        go_on.set()
        thread.join()
