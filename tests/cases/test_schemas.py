"""Starts over databases that are fresh, or that hold another schema."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from ramet.tree.v1.tree_pb2_grpc import SessionTreeStub
from ramet_server.database import schema
from ramet_server.database.tables.session import session
from ramet_server.serving.readiness import StartRefused
from tests.cases.bulk import engine_of
from tests.cases.conftest import Connect, Start
from tests.conformance.session import making as storing
from tests.conformance.tree import making as growing
from tests.harness.mariadb import MariaDb
from tests.harness.server import running_server

TEXT = "计划 😀 e\u0301 naïve"


@pytest.mark.mariadb
@pytest.mark.parametrize("charset", ["utf8mb4", "latin1", "utf8mb3"])
def test_a_fresh_database_is_set_up_whatever_its_character_set(
    mariadb_server: MariaDb, connect: Connect, charset: str
) -> None:
    """adk-js#436: the schema builds on a fresh utf8mb4 database (and on others), keys and all."""
    url = mariadb_server.new_database(charset)
    with running_server(url) as address:
        channel = connect(address)
        storage, tree = SessionStorageStub(channel), SessionTreeStub(channel)
        # The longest of everything, in characters of four bytes: no key may be too long for it.
        longest, label = "i" * 128, "😀" * 256
        storing.put(storage, longest, label=label, tags=["😀" * 128])
        storing.append(storage, longest, storing.user(TEXT))
        growing.create(tree, longest, label=label)
        assert storing.texts(storage, longest) == [TEXT]
        assert storing.get(storage, longest).label == growing.get(tree, longest).label == label
    mariadb_server.drop_database(url)


def revision_and_sessions(url: str) -> tuple[str, int]:
    """What the database says of its schema, and how many sessions it holds."""
    engine = engine_of(url)
    with engine.connect() as connection:
        [revision] = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalars()
        sessions = connection.execute(sa.select(sa.func.count()).select_from(session)).scalar_one()
    engine.dispose()
    return revision, sessions


def test_an_older_schema_is_refused_with_what_to_run_and_left_alone(
    database_url: str, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """adk-python#3272: start on an older schema -> migrates, or refuses with what to run."""
    with running_server(database_url) as address:
        storing.put(SessionStorageStub(connect(address)), "main")
    before = revision_and_sessions(database_url)
    # The history has one revision so far, so the older schema is made by a server that wants a newer one.
    monkeypatch.setattr(schema, "head", lambda: "9999")
    with pytest.raises(StartRefused, match="ramet-server migrate"), running_server(database_url):
        pass
    assert revision_and_sessions(database_url) == before


def test_a_newer_schema_is_refused_by_the_program_and_left_alone(
    database_url: str, start: Start, connect: Connect
) -> None:
    """adk-python#3272, the other way round: an old server must not write to what it does not know."""
    server = start(database_url)
    storing.put(SessionStorageStub(connect(server.address)), "main")
    assert server.terminate() == 0
    engine = engine_of(database_url)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(RuntimeError, match="upgrade the server"):
        start(database_url)
    assert revision_and_sessions(database_url) == ("9999", 1)
