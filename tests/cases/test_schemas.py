"""Starts over databases that are fresh, or that hold another schema."""

from __future__ import annotations

import grpc
import pytest
import sqlalchemy as sa

from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from ramet.tree.v1.tree_pb2_grpc import SessionTreeStub
from ramet_server.database.tables import metadata
from tests.cases.conftest import Connect, Start
from tests.conformance.refusing import refused
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


def revise(url: str, revision: str) -> None:
    """Say that the schema has another revision than it has."""
    engine = sa.create_engine(url.replace("mysql://", "mysql+pymysql://"), poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})
    engine.dispose()


@pytest.mark.parametrize("revision", ["0000", "9999"])
def test_a_schema_of_another_revision_is_refused_with_what_to_run_and_left_alone(
    start: Start, connect: Connect, database_url: str, revision: str
) -> None:
    """adk-python#3272: start on another schema -> migrates, or refuses with what to run."""
    server = start()
    storage = SessionStorageStub(connect(server.address))
    storing.put(storage, "main")
    server.terminate()
    revise(database_url, revision)
    if database_url.startswith("sqlite"):
        with pytest.raises(RuntimeError, match=r"ramet-server migrate|upgrade the server"):
            start()
    else:
        refusing = SessionStorageStub(connect(start().address))
        with refused(grpc.StatusCode.UNAVAILABLE, "SCHEMA_MISMATCH") as refusal:
            storing.get(refusing, "main")
        assert "ramet-server migrate" in refusal.message or "upgrade the server" in refusal.message
    engine = sa.create_engine(database_url.replace("mysql://", "mysql+pymysql://"), poolclass=sa.NullPool)
    with engine.connect() as connection:
        [found] = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalars()
        sessions = connection.execute(sa.select(sa.func.count()).select_from(metadata.tables["session"])).scalar()
    engine.dispose()
    assert (found, sessions) == (revision, 1)
