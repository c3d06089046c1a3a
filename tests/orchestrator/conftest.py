"""Real servers and orchestrators over them: on each backend where a server's word decides, on SQLite elsewhere.

What a turn says to the model, how tools are run and how layers are joined is decided in the client, so one backend is
enough for it. Modules about what is written, refused and consumed take ``each_address`` for their ``address``.
"""

import uuid
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

import ramet
from tests.harness import sqlite
from tests.harness.mariadb import MariaDb
from tests.harness.server import running_server

BACKENDS = [pytest.param("sqlite"), pytest.param("mariadb", marks=pytest.mark.mariadb)]


@pytest.fixture(scope="session")
def sqlite_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server over SQLite."""
    with running_server(sqlite.new_database(tmp_path_factory.mktemp("orchestrator"))) as at:
        yield at


@pytest.fixture(params=BACKENDS, scope="module")
def each_address(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a server, on each backend."""
    if request.param == "sqlite":
        yield request.getfixturevalue("sqlite_address")
        return
    server: MariaDb = request.getfixturevalue("mariadb_server")
    with running_server(server.new_database()) as at:
        yield at


@pytest.fixture(scope="module")
def address(sqlite_address: str) -> str:
    """The address of a server; a module may take each backend's instead."""
    return sqlite_address


@pytest.fixture
def space() -> str:
    """A space that nobody else uses."""
    return f"space-{uuid.uuid4().hex}"


@pytest_asyncio.fixture
async def client(address: str, space: str) -> AsyncIterator[ramet.Client]:
    """An asyncio client."""
    async with ramet.connect(address, space=space) as client:
        yield client


@pytest.fixture
def orchestrator(client: ramet.Client) -> ramet.Orchestrator:
    """An orchestrator over the client."""
    return ramet.Orchestrator(client)
