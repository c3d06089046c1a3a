"""How health follows a database that was ready once."""

import asyncio

import pytest

from ramet_server.domain.errors import DatabaseUnavailable
from ramet_server.serving.readiness import Readiness


async def test_health_follows_the_database_whatever_a_look_at_it_raises() -> None:
    looks: list[Exception | None] = [None, DatabaseUnavailable("away"), None, AttributeError("odd"), None, None]
    shown: asyncio.Queue[bool] = asyncio.Queue()

    def ping() -> None:
        error = looks.pop(0) if looks else None
        if error is not None:
            raise error

    async def show(ready: bool) -> None:
        shown.put_nowait(ready)

    readiness = Readiness(lambda: None, ping, show, ping_seconds=0.01)
    with pytest.raises(DatabaseUnavailable):
        readiness.check()
    keep = asyncio.create_task(readiness.keep(insist=False))
    assert [await asyncio.wait_for(shown.get(), 10) for _ in range(5)] == [True, False, True, False, True]
    # Calls go on to try the database: what one look saw may be over.
    readiness.check()
    keep.cancel()
    with pytest.raises(asyncio.CancelledError):
        await keep
