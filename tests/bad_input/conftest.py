"""The servers that bad input is sent to: one on every backend, with the same world in each."""

from collections.abc import Iterator
from contextlib import ExitStack

import grpc
import pytest
from sqlalchemy import create_engine
from sqlalchemy.engine import make_url

from tests.bad_input.doors import Door
from tests.bad_input.snapshot import snapshots
from tests.bad_input.stage import Stage
from tests.harness import sqlite
from tests.harness.mariadb import MariaDb
from tests.harness.server import running_server

_BIG = [("grpc.max_send_message_length", 64 << 20), ("grpc.max_receive_message_length", 64 << 20)]


@pytest.fixture(scope="session")
def stage(mariadb_server: MariaDb, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Servers on every backend, with the world that no test may change."""
    urls = {
        "sqlite": sqlite.new_database(tmp_path_factory.mktemp("bad-input")),
        "mariadb": mariadb_server.new_database(),
    }
    with ExitStack() as stack:
        stage = Stage([_open(stack, name, url) for name, url in urls.items()])
        stage.build()
        yield stage


def _open(stack: ExitStack, name: str, url: str) -> Door:
    address = stack.enter_context(running_server(url))
    channel = stack.enter_context(grpc.insecure_channel(address, options=_BIG))
    # A connection of its own, that knows nothing of the server's tables and types.
    parsed = make_url(url)
    driver = "mysql+pymysql" if parsed.drivername == "mysql" else parsed.drivername
    engine = create_engine(parsed.set(drivername=driver), isolation_level="AUTOCOMMIT")
    stack.callback(engine.dispose)
    return Door(name, channel, snapshots(stack.enter_context(engine.connect())))
