"""A forest of its own for each test, over each backend."""

from collections.abc import Iterator

import pytest

from ramet_server.database import schema
from ramet_server.database.database import Database
from ramet_server.domain.call import Call
from ramet_server.domain.ids import new_id
from ramet_server.domain.limits import Limits
from tests.harness import sqlite
from tests.harness.mariadb import MariaDb
from tests.tree_service.checking import check_whole
from tests.tree_service.forest import Forest, TurnedClock


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDb]:
    """A server for all tests of the session."""
    with MariaDb() as server:
        yield server


@pytest.fixture(scope="session", params=["sqlite", "mariadb"])
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A database with the schema, for all tests of one backend."""
    if request.param == "sqlite":
        url = sqlite.new_database(tmp_path_factory.mktemp("tree"))
    else:
        server: MariaDb = request.getfixturevalue("mariadb")
        url = server.new_database()
    opened = Database.open(url)
    schema.prepare(opened, Call("tests"))
    yield opened
    opened.close()


@pytest.fixture
def clock() -> TurnedClock:
    """The clock of the forest."""
    return TurnedClock()


@pytest.fixture
def forest(database: Database, clock: TurnedClock) -> Iterator[Forest]:
    """An empty forest; whatever a test does to it, it must be whole afterwards."""
    made = Forest(database, Call(f"space-{new_id()}"), Limits(), clock)
    yield made
    check_whole(made)
