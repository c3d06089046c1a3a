"""Real servers, on each backend, and clients within a space of their own."""

import uuid
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

import ramet
from tests.harness import sqlite
from tests.harness.mariadb import MariaDb
from tests.harness.server import running_server

BACKENDS = [pytest.param("sqlite"), pytest.param("mariadb", marks=pytest.mark.mariadb)]


@pytest.fixture(params=BACKENDS, scope="module")
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server of both contracts, on each backend; a module's tests share it."""
    if request.param == "sqlite":
        url = sqlite.new_database(tmp_path_factory.mktemp("sdk"))
    else:
        server: MariaDb = request.getfixturevalue("mariadb_server")
        url = server.new_database()
    with running_server(url) as at:
        yield at


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
