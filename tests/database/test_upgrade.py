"""The way of a database from one revision to the next: its rows stay, and a cut upgrade runs again."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import insert, inspect, select, text

from ramet_server.database import schema
from ramet_server.database.database import Database
from ramet_server.database.schema import SchemaState
from ramet_server.database.tables import metadata
from ramet_server.database.tables.session import session
from ramet_server.database.tables.shared import space
from ramet_server.domain.errors import SchemaMismatch
from tests.database import counters, rows
from tests.harness.mariadb import MariaDb
from tests.harness.waiting import wait_until

_TELEMETRY = {
    "agent_step",
    "diagnosis_feedback",
    "diagnosis_session",
    "telemetry_event",
    "telemetry_producer",
    "tool_invocation",
}


@pytest.fixture
def first(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """A database at the first revision, with a session in it, on each backend."""
    database = Database.open(database_url, pool_size=2)
    upgrade = command.upgrade
    with monkeypatch.context() as patch:
        patch.setattr(command, "upgrade", lambda config, _: upgrade(config, "0001"))
        schema.upgrade(database, counters.call())
    row = rows.session("kept", "main", label="Main")
    database.write(counters.call(), lambda connection: connection.execute(insert(session), row))
    of_old = {"space_id": "kept", "root_count": 1, "created_at": row["created_at"]}
    database.write(counters.call(), lambda connection: connection.execute(insert(space), of_old))
    yield database
    database.close()


def _tables(database: Database) -> set[str]:
    with database.engine.connect() as connection:
        return set(inspect(connection).get_table_names())


def _is_whole(database: Database) -> bool:
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        return not list(compare_metadata(context, metadata))


def test_the_first_revision_knows_no_telemetry(first: Database) -> None:
    assert schema.state(first, counters.call()) is SchemaState.OLDER
    assert not _TELEMETRY & _tables(first)
    with pytest.raises(SchemaMismatch, match="ramet-server migrate"):
        schema.prepare(first, counters.call())


def test_an_upgrade_adds_what_is_missing_and_keeps_what_is_there(first: Database) -> None:
    assert schema.upgrade(first, counters.call()) == ("0001", schema.head())
    assert schema.state(first, counters.call()) is SchemaState.CURRENT
    assert _tables(first) >= _TELEMETRY
    assert _is_whole(first)
    label = select(session.c.label).where(session.c.space_id == "kept")
    assert first.read(counters.call(), lambda connection: connection.execute(label).scalar_one()) == "Main"
    # Nobody can watch the forest from its start, since what became of its nodes was not written down.
    extent = select(space.c.tree_position, space.c.tree_floor).where(space.c.space_id == "kept")
    assert first.read(counters.call(), lambda connection: tuple(connection.execute(extent).one())) == (1, 1)


@pytest.mark.mariadb
def test_a_server_that_meets_another_between_two_revisions_waits_for_it(
    mariadb_server: MariaDb, mariadb_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    between, go_on = threading.Event(), threading.Event()
    upgrade = command.upgrade

    def slowly(config: Config, revision: str) -> None:
        upgrade(config, "0001")
        between.set()
        assert go_on.wait(60)
        upgrade(config, revision)

    def second_waits() -> bool:
        waiting = "SELECT 1 FROM information_schema.processlist WHERE db = DATABASE() AND state = 'User lock'"
        return bool(mariadb_server.execute(waiting, mariadb_url.rpartition("/")[2]))

    monkeypatch.setattr(command, "upgrade", slowly)
    first, second = Database.open(mariadb_url), Database.open(mariadb_url)
    with ThreadPoolExecutor(2) as threads:
        preparing = [threads.submit(schema.prepare, first, counters.call())]
        try:
            assert between.wait(60)
            assert schema.state(second, counters.call()) is SchemaState.OLDER
            preparing.append(threads.submit(schema.prepare, second, counters.call()))
            wait_until(lambda: second_waits() or preparing[1].done(), "the second server waits for the first")
        finally:
            go_on.set()
        for each in preparing:
            each.result(60)
    assert schema.state(second, counters.call()) is SchemaState.CURRENT
    first.close()
    second.close()


def test_an_upgrade_that_was_cut_is_finished(first: Database) -> None:
    schema.upgrade(first, counters.call())
    on_table = " ON agent_step" if first.engine.dialect.name == "mysql" else ""
    cut = [
        "UPDATE alembic_version SET version_num = '0001'",
        "DROP TABLE telemetry_event",
        "DROP TABLE tool_invocation",
        f"DROP INDEX idx_agent_name{on_table}",
    ]
    first.write(counters.call(), lambda connection: [connection.execute(text(statement)) for statement in cut])
    schema.upgrade(first, counters.call())
    assert _is_whole(first)


def test_defaults_are_those_that_people_know_who_write_rows_by_hand(first: Database) -> None:
    schema.upgrade(first, counters.call())
    by_hand = [
        """INSERT INTO diagnosis_session (id, space_id, session_id, query, last_heard_at)
           VALUES (1, 'default', 'd', 'why', '2026-06-26 00:00:00')""",
        """INSERT INTO agent_step (id, space_id, session_id, step_key, step_index, agent_name)
           VALUES (1, 'default', 'd', 's', 0, 'planner')""",
        """INSERT INTO tool_invocation (id, space_id, session_id, invocation_key, tool_name, input_params)
           VALUES (1, 'default', 'd', 't', 'lookup_knowledge', '{}')""",
    ]
    first.write(counters.call(), lambda connection: [connection.execute(text(statement)) for statement in by_hand])
    look = (
        "SELECT d.status, s.has_tool_call, t.is_truncated, t.success, d.created_at IS NOT NULL, "
        "d.updated_at IS NOT NULL, s.created_at IS NOT NULL, t.created_at IS NOT NULL "
        "FROM diagnosis_session d, agent_step s, tool_invocation t"
    )
    found = first.read(counters.call(), lambda connection: connection.execute(text(look)).one())
    assert tuple(found) == ("PENDING", 0, 0, 1, 1, 1, 1, 1)
