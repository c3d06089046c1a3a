"""A server that was told a diagnosis, and its trace read back by the real classes of OTLP."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

import ramet
from ramet_server.database.database import Database
from tests.harness.server import running_server


@pytest.fixture(scope="module")
def address(database: Database) -> Iterator[str]:
    """The address of a server over each backend; a module's tests share it."""
    with running_server(database.engine.url.render_as_string(hide_password=False)) as at:
        yield at


@pytest_asyncio.fixture
async def client(address: str) -> AsyncIterator[ramet.Client]:
    """A client of a space that nobody else uses."""
    async with ramet.connect(address, space=f"space-{uuid.uuid4().hex}") as client:
        yield client
