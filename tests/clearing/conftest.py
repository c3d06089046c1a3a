"""All services over a database of the test's own."""

from collections.abc import Iterator

import pytest

from ramet_server.database import schema
from ramet_server.database.database import Database
from ramet_server.domain.call import Call
from tests.verifying.world import World


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """Two empty spaces, on each backend."""
    opened = Database.open(database_url)
    schema.prepare(opened, Call(""))
    yield World(opened)
    opened.close()
