"""Fixtures of the tests of units of work."""

from collections.abc import Iterator

import pytest

from ramet_server.database import schema
from ramet_server.database.database import Database
from tests.database import counters


@pytest.fixture
def on_mariadb(mariadb_url: str) -> Iterator[Database]:
    """A database of MariaDB with the schema, and a pool of two."""
    database = Database.open(mariadb_url, pool_size=2)
    schema.prepare(database, counters.call())
    yield database
    database.close()
