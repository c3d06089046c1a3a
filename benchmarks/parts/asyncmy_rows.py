"""The driver asyncmy, where it is installed, behind the calls of a plain driver."""

import asyncio
import importlib
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit


class _Plain:
    """An object of asyncmy whose calls wait for their results, on an event loop of their own."""

    def __init__(self, loop: asyncio.AbstractEventLoop, wrapped: Any) -> None:
        self._loop = loop
        self._wrapped = wrapped

    def cursor(self) -> "_Plain":
        return _Plain(self._loop, self._wrapped.cursor())

    def commit(self) -> None:
        self._loop.run_until_complete(self._wrapped.commit())

    def execute(self, statement: str, parameters: Sequence[object] = ()) -> None:
        self._loop.run_until_complete(self._wrapped.execute(statement, parameters))

    def executemany(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        self._loop.run_until_complete(self._wrapped.executemany(statement, rows))

    def fetchall(self) -> Any:
        return self._loop.run_until_complete(self._wrapped.fetchall())


def connect(url: str) -> Any:
    """Returns a connection; raises ImportError where there is no asyncmy."""
    driver = importlib.import_module("asyncmy")
    parts = urlsplit(url)
    loop = asyncio.new_event_loop()
    connected = driver.connect(
        host="127.0.0.1", port=parts.port, user=parts.username, database=parts.path[1:], charset="utf8mb4"
    )
    return _Plain(loop, loop.run_until_complete(connected))
