"""All services over a database of the tests' own, since a verification looks at all spaces."""

from collections.abc import Iterator

import pytest

from ramet_server.database.database import Database
from tests.verifying.world import Rows, World


@pytest.fixture(scope="module")
def filled(database: Database) -> tuple[World, Rows]:
    """Two filled spaces and all that lies in them, on each backend."""
    world = World(database)
    world.fill()
    return world, world.dump()


@pytest.fixture
def world(filled: tuple[World, Rows]) -> Iterator[World]:
    """Two filled spaces, the same for every test."""
    made, whole = filled
    yield made
    made.restore(whole)
