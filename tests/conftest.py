"""Fixtures of every suite: database servers, and databases on each backend."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ramet.recorder import Recorder, forking
from ramet_server.database import schema
from ramet_server.database.database import Database
from ramet_server.domain.call import Call
from tests.harness import sqlite
from tests.harness.mariadb import MariaDb

# Before any test imports the suites of the kit, so that their assertions tell what they compared.
pytest.register_assert_rewrite(
    "tests.conformance.refusing", "tests.conformance.session", "tests.conformance.telemetry", "tests.conformance.tree"
)

BACKENDS = [pytest.param("sqlite"), pytest.param("mariadb", marks=pytest.mark.mariadb)]
"""Each backend that runs here, as parameters of a fixture."""


@pytest.fixture(autouse=True)
def _recorders_end() -> Iterator[None]:
    """Ends every recorder with its test, however that ends: its thread would disturb the tests that follow."""
    yield
    for recorder in list(forking._recorders):
        if isinstance(recorder, Recorder):
            recorder.close(0.1)
    for thread in threading.enumerate():
        if thread.name == "ramet-recorder":
            thread.join(10)
            assert not thread.is_alive(), "the thread of a recorder does not end"


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariaDb]:
    """A MariaDB server that all tests share; whoever needs to stop one starts their own."""
    with MariaDb() as server:
        yield server


@pytest.fixture
def mariadb_url(mariadb_server: MariaDb) -> Iterator[str]:
    """The URL of an empty MariaDB database."""
    url = mariadb_server.new_database()
    yield url
    mariadb_server.drop_database(url)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of a SQLite file that does not exist yet."""
    return sqlite.new_database(tmp_path)


@pytest.fixture(params=BACKENDS)
def database_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty database, on each backend."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture(params=BACKENDS, scope="module")
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A database with the schema, on each backend; a module's tests share it, so each takes its own space."""
    if request.param == "sqlite":
        url = sqlite.new_database(tmp_path_factory.mktemp("database"))
    else:
        server: MariaDb = request.getfixturevalue("mariadb_server")
        url = server.new_database()
    database = Database.open(url)
    schema.prepare(database, Call("default"))
    yield database
    database.close()
