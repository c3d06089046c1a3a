"""Connections to the database that die while nobody looks: the next call works all the same.

kubeflow/metadata#198: wait_timeout=2, idle; KILL the connection -> the next call works.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from tests.cases.conftest import Connect
from tests.conformance.session import making as storing
from tests.harness.mariadb import MariaDb
from tests.harness.server import running_server
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.mariadb

CALLS = 16


@pytest.fixture
def short_lived(mariadb_server: MariaDb) -> Iterator[MariaDb]:
    """A MariaDB that ends connections after two idle seconds."""
    [usual] = mariadb_server.execute("SELECT @@GLOBAL.wait_timeout AS seconds")
    mariadb_server.execute("SET GLOBAL wait_timeout = 2")
    yield mariadb_server
    mariadb_server.execute(f"SET GLOBAL wait_timeout = {usual['seconds']}")


def connections(server: MariaDb, url: str) -> set[int]:
    """The ids of all connections to this database."""
    name = url.rpartition("/")[2]
    return {row["id"] for row in server.execute(f"SELECT id FROM information_schema.processlist WHERE db = '{name}'")}


def kill_all(server: MariaDb, url: str) -> None:
    """Kill every connection to this database, and wait until they are gone."""
    killed = connections(server, url)
    for thread in killed:
        server.execute(f"KILL CONNECTION {thread}")
    wait_until(lambda: not killed & connections(server, url), "the connections are gone")


def write_and_read(storage: SessionStorageStub, name: str) -> None:
    """Use every connection of the pool, for writes and for reads."""
    with ThreadPoolExecutor(CALLS) as pool:
        list(pool.map(lambda n: storing.append(storage, "main", storing.user(f"{name}{n}")), range(CALLS)))
        list(pool.map(lambda _: storing.history(storage, "main"), range(CALLS)))


def test_calls_after_an_idle_time_beyond_the_databases_patience_work(
    short_lived: MariaDb, mariadb_url: str, connect: Connect
) -> None:
    with running_server(mariadb_url) as address:
        storage = SessionStorageStub(connect(address))
        storing.put(storage, "main")
        write_and_read(storage, "before")
        open_before = connections(short_lived, mariadb_url)
        assert len(open_before) > 1
        # The server's own look at the database may keep one of them awake.
        wait_until(lambda: len(open_before & connections(short_lived, mariadb_url)) <= 1, "idle connections end")
        write_and_read(storage, "after")
        assert len(storing.texts(storage, "main")) == 2 * CALLS


def test_calls_after_every_connection_was_killed_work(
    mariadb_server: MariaDb, mariadb_url: str, connect: Connect
) -> None:
    with running_server(mariadb_url) as address:
        storage = SessionStorageStub(connect(address))
        storing.put(storage, "main")
        for round_ in range(3):
            write_and_read(storage, f"round{round_}-")
            kill_all(mariadb_server, mariadb_url)
        write_and_read(storage, "last")
        assert len(storing.texts(storage, "main")) == 4 * CALLS
