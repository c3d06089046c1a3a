"""The schema is set up once, by one of many, and never over a database that does not fit."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, insert, inspect, select, text, update

from ramet_server.database import schema
from ramet_server.database.database import Database
from ramet_server.database.schema import SchemaState
from ramet_server.database.tables import metadata
from ramet_server.database.tables.session import context_slot, session
from ramet_server.database.tables.tree import session_summary
from ramet_server.domain.errors import DatabaseUnavailable, DeadlinePassed, SchemaMismatch
from tests.database import counters, rows
from tests.harness.mariadb import MariaDb


@pytest.fixture
def empty(database_url: str) -> Iterator[Database]:
    """An empty database, on each backend."""
    database = Database.open(database_url, pool_size=2)
    yield database
    database.close()


def _state(database: Database) -> SchemaState:
    return schema.state(database, counters.call())


def _run(database: Database, *statements: str) -> None:
    def work(connection: Connection) -> None:
        for statement in statements:
            connection.execute(text(statement))

    database.write(counters.call(), work)


def _differences(database: Database) -> list[object]:
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        return list(compare_metadata(context, metadata))


def test_an_empty_database_is_set_up(empty: Database) -> None:
    assert _state(empty) is SchemaState.EMPTY
    schema.prepare(empty, counters.call())
    assert _state(empty) is SchemaState.CURRENT


def test_the_history_makes_exactly_the_tables(empty: Database) -> None:
    schema.prepare(empty, counters.call())
    assert _differences(empty) == []


def test_a_second_set_up_changes_nothing(empty: Database) -> None:
    assert schema.upgrade(empty, counters.call()) == (None, schema.head())
    space_id = counters.started(empty)
    assert schema.upgrade(empty, counters.call()) == (schema.head(), schema.head())
    schema.prepare(empty, counters.call())
    assert counters.stored(empty, space_id) == 0


_SERVER = """
import sys
from ramet_server.database import schema
from ramet_server.database.database import Database
from ramet_server.domain.call import Call
database = Database.open(sys.argv[1])
print("waits", flush=True)
sys.stdin.readline()
schema.prepare(database, Call("default"))
print(schema.state(database, Call("default")).value)
database.close()
"""


def test_five_servers_at_once_on_an_empty_database_all_come_up(empty: Database) -> None:
    url = empty.engine.url.render_as_string(hide_password=False)
    servers = [
        subprocess.Popen(
            [sys.executable, "-c", _SERVER, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(5)
    ]
    for server in servers:
        assert server.stdout is not None
        assert server.stdout.readline() == "waits\n"
    for server in servers:
        assert server.stdin is not None
        server.stdin.write("go\n")
        server.stdin.flush()
    ends = [server.communicate(timeout=60) for server in servers]
    assert [out for out, _ in ends] == ["current\n"] * 5, ends
    assert _state(empty) is SchemaState.CURRENT
    assert _differences(empty) == []


def test_an_older_schema_is_refused_with_the_command_to_run(empty: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    schema.prepare(empty, counters.call())
    revision = schema.head()
    monkeypatch.setattr(schema, "head", lambda: "9999")
    assert _state(empty) is SchemaState.OLDER
    with pytest.raises(SchemaMismatch, match="ramet-server migrate") as refusal:
        schema.prepare(empty, counters.call())
    assert refusal.value.details == {"revision": revision, "needed": "9999"}


def test_a_newer_schema_is_refused_by_every_door(empty: Database) -> None:
    schema.prepare(empty, counters.call())
    _run(empty, "UPDATE alembic_version SET version_num = '9999'")
    assert _state(empty) is SchemaState.NEWER
    for door in (schema.prepare, schema.upgrade):
        with pytest.raises(SchemaMismatch, match="upgrade the server"):
            door(empty, counters.call())


def test_a_set_up_that_was_cut_is_finished(empty: Database) -> None:
    schema.prepare(empty, counters.call())
    _run(
        empty,
        "DELETE FROM alembic_version",
        "DROP VIEW session_summary",
        "DROP TABLE node_ref",
        "DROP INDEX session_by_label" + (" ON session" if empty.engine.dialect.name == "mysql" else ""),
    )
    assert _state(empty) is SchemaState.HALF_MADE
    schema.prepare(empty, counters.call())
    assert _state(empty) is SchemaState.CURRENT
    assert _differences(empty) == []


def test_tables_of_another_product_are_not_taken_over(empty: Database) -> None:
    _run(empty, "CREATE TABLE session (id INTEGER PRIMARY KEY, data TEXT)")
    with pytest.raises(SchemaMismatch, match="session"):
        schema.prepare(empty, counters.call())
    with empty.engine.connect() as connection:
        assert inspect(connection).get_table_names() == ["session"]


def test_a_set_up_that_fails_on_a_file_leaves_nothing(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database.open(sqlite_url)

    def fail(_config: object, _revision: str) -> None:
        raise RuntimeError("cut")

    with monkeypatch.context() as patch:
        patch.setattr("ramet_server.database.migrations.repeatable.create_view", fail)
        with pytest.raises(RuntimeError):
            schema.prepare(database, counters.call())
    assert _state(database) is SchemaState.EMPTY
    schema.prepare(database, counters.call())
    database.close()


def test_a_file_that_is_no_database_is_unavailable(sqlite_url: str) -> None:
    Path(sqlite_url.removeprefix("sqlite:///")).write_bytes(b"something else entirely" * 100)
    database = Database.open(sqlite_url)
    with pytest.raises(DatabaseUnavailable):
        schema.prepare(database, counters.call())
    database.close()


@pytest.mark.mariadb
@pytest.mark.parametrize("charset", ["latin1", "utf8mb3", "utf8mb4"])
def test_text_is_exact_whatever_the_databases_default_charset_is(mariadb_server: MariaDb, charset: str) -> None:
    url = mariadb_server.new_database(charset)
    database = Database.open(url)
    schema.prepare(database, counters.call())
    assert _differences(database) == []
    call = counters.call()
    content = "naïve 你好 😀 \\ ' \" % ? :a \r\n\t e\u0301 " + "x" * 70_000
    database.write(
        call,
        lambda connection: [
            connection.execute(insert(session), rows.session(call.space, "main", label="héllo 你好 😀")),
            connection.execute(insert(context_slot), rows.slot(call.space, "main", content)),
        ],
    )
    query = select(session.c.label, context_slot.c.content).where(
        session.c.space_id == call.space, context_slot.c.space_id == session.c.space_id
    )
    found = database.read(call, lambda connection: connection.execute(query).one())
    assert tuple(found) == ("héllo 你好 😀", content)
    database.close()
    mariadb_server.drop_database(url)


@pytest.mark.mariadb
def test_an_account_without_the_right_to_make_tables_is_told_unavailable(
    mariadb_server: MariaDb, mariadb_url: str
) -> None:
    name = mariadb_url.rpartition("/")[2]
    mariadb_server.execute(f"CREATE USER '{name}'@'127.0.0.1' IDENTIFIED BY 'pass'")
    mariadb_server.execute(f"GRANT SELECT ON {name}.* TO '{name}'@'127.0.0.1'")
    database = Database.open(mariadb_url.replace("root@", f"{name}:pass@"))
    with pytest.raises(DatabaseUnavailable):
        schema.prepare(database, counters.call())
    database.close()
    mariadb_server.execute(f"DROP USER '{name}'@'127.0.0.1'")


@pytest.mark.mariadb
def test_an_upgrade_waits_for_another_no_longer_than_its_deadline(mariadb_server: MariaDb, mariadb_url: str) -> None:
    first, second = Database.open(mariadb_url), Database.open(mariadb_url)
    with first.engine.connect() as connection, first.backend.schema_lock(connection, counters.call()):
        with pytest.raises(DeadlinePassed):
            schema.prepare(second, counters.call(1))
        assert _state(second) is SchemaState.EMPTY
    schema.prepare(second, counters.call())
    first.close()
    second.close()


def test_erased_text_is_gone_from_the_files(sqlite_url: str) -> None:
    database = Database.open(sqlite_url)
    schema.prepare(database, counters.call())
    call = counters.call()
    secret = "hunter2" * 2000
    erase = update(context_slot).where(context_slot.c.space_id == call.space).values(content=None)
    database.write(
        call, lambda connection: connection.execute(insert(context_slot), rows.slot(call.space, "main", secret))
    )
    database.write(call, lambda connection: connection.execute(erase))
    database.forget_deleted(call)
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    files = list(path.parent.glob(f"{path.name}*"))
    assert len(files) == 3
    assert not any(b"hunter2" in file.read_bytes() for file in files)
    database.close()


def test_forgetting_is_possible_on_each_backend(database: Database) -> None:
    database.forget_deleted(counters.call(20))


def test_ids_are_compared_byte_for_byte(database: Database) -> None:
    call = counters.call()
    ids = ["Abc", "abc", "ABC", "a", "a!", "a b"]
    made = [rows.session(call.space, session_id) for session_id in ids]
    database.write(call, lambda connection: connection.execute(insert(session), made))
    query = select(session.c.session_id).where(session.c.space_id == call.space)
    for session_id in ids:
        one = query.where(session.c.session_id == session_id)
        assert database.read(call, lambda connection, one=one: connection.execute(one).scalars().all()) == [session_id]  # type: ignore[misc]  # a lambda's default has no type
    found = database.read(
        call, lambda connection: connection.execute(query.order_by(session.c.session_id)).scalars().all()
    )
    assert found == sorted(ids)


def test_the_trees_view_shows_only_what_the_tree_may_see(database: Database) -> None:
    call = counters.call()
    row = rows.session(call.space, "main", turn_count=3)
    database.write(call, lambda connection: connection.execute(insert(session), row))
    found = database.read(
        call,
        lambda connection: connection.execute(
            select(session_summary).where(session_summary.c.space_id == call.space)
        ).one(),
    )
    assert found._asdict() == {
        "space_id": call.space,
        "session_id": "main",
        "origin": row["origin"],
        "status": "ACTIVE",
        "turn_count": 3,
    }
