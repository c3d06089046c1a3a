"""Two spaces of the test's own in one database, on each backend: one that leaves, one that comes."""

import uuid

import pytest

from ramet_server.database.database import Database
from tests.archiving.world import Home


@pytest.fixture
def left(database: Database) -> Home:
    """An empty space, to be filled and exported."""
    return Home(database, f"left-{uuid.uuid4().hex}")


@pytest.fixture
def come(database: Database) -> Home:
    """An empty space, to import into."""
    return Home(database, f"come-{uuid.uuid4().hex}")
