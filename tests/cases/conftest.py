"""Servers of their own, for cases that stop, cut or fill them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import grpc
import pytest

from tests.conformance.calling import within
from tests.conftest import BACKENDS
from tests.harness import sqlite
from tests.harness.mariadb import MariaDb
from tests.harness.server import PROGRAM, ServerProcess

Start = Callable[[str], ServerProcess]
Connect = Callable[[str], grpc.Channel]


@contextmanager
def starting(folder: Path) -> Iterator[Start]:
    """Gives a function that starts the program `ramet-server` over a database; all end with the block."""
    with ExitStack() as stack:

        def start_one(url: str) -> ServerProcess:
            own = folder / uuid.uuid4().hex
            own.mkdir()
            return stack.enter_context(ServerProcess(own, {"RAMET_DATABASE_URL": url}, [PROGRAM, "all"]))

        yield start_one


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts programs `ramet-server` over a database; all end with the test."""
    with starting(tmp_path) as start_one:
        yield start_one


@pytest.fixture(params=BACKENDS, scope="module")
def shared_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a database on each backend, empty at first; a module's tests share it, each in its own space."""
    if request.param == "sqlite":
        yield sqlite.new_database(tmp_path_factory.mktemp("shared"))
        return
    mariadb: MariaDb = request.getfixturevalue("mariadb_server")
    url = mariadb.new_database()
    yield url
    mariadb.drop_database(url)


@pytest.fixture(scope="module")
def two_servers(shared_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ServerProcess]]:
    """Two servers over the module's database, on each backend."""
    with starting(tmp_path_factory.mktemp("servers")) as start_one:
        yield [start_one(shared_url), start_one(shared_url)]


@pytest.fixture
def space() -> str:
    """A space of the test's own."""
    return f"case-{uuid.uuid4().hex}"


@pytest.fixture
def connect(space: str) -> Iterator[Connect]:
    """Opens channels into the test's space that share no connection with others; all close with the test."""
    with ExitStack() as stack:

        def open_one(address: str) -> grpc.Channel:
            # Without this, channels to one address share what the test wants to cut.
            options = [("grpc.use_local_subchannel_pool", 1), ("grpc.initial_reconnect_backoff_ms", 100)]
            return within(stack.enter_context(grpc.insecure_channel(address, options=options)), space)

        yield open_one
