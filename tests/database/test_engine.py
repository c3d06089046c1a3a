"""Which databases are taken, and what holds on each of their connections."""

import pytest
from sqlalchemy import Connection, text

from ramet_server.database.database import Database
from ramet_server.database.engine import parse_url, redacted
from tests.database import counters
from tests.harness.mariadb import MariaDb


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("sqlite:///ramet.db", "sqlite+pysqlite:///ramet.db"),
        ("sqlite+pysqlite:////var/lib/ramet.db", "sqlite+pysqlite:////var/lib/ramet.db"),
        ("mysql://u:p@h/ramet", "mysql+pymysql://u:p@h/ramet"),
        ("mariadb://u:p@h:3307/ramet", "mysql+pymysql://u:p@h:3307/ramet"),
        ("mysql+pymysql://u@h/ramet?charset=latin1&ssl_ca=a.pem", "mysql+pymysql://u@h/ramet?ssl_ca=a.pem"),
        ("mariadb+pymysql://u@/ramet?unix_socket=/s", "mysql+pymysql://u@/ramet?unix_socket=%2Fs"),
    ],
)
def test_these_urls_are_taken(given: str, used: str) -> None:
    assert parse_url(given).render_as_string(hide_password=False) == used


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("", "cannot be read"),
        ("ramet.db", "cannot be read"),
        ("sqlite://", "needs a file"),
        ("sqlite:///:memory:", "needs a file"),
        ("sqlite:///file:a?mode=memory&uri=true", "needs a file"),
        ("mysql://u:hunter2@h", "names no database"),
        ("postgresql://u:hunter2@h/ramet", "not supported"),
        ("mysql+mysqldb://u:hunter2@h/ramet", "not supported"),
        ("mysql://u:hunter2@h:port/ramet", "cannot be read"),
    ],
)
def test_other_urls_are_refused_without_their_password(given: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as refusal:
        parse_url(given)
    assert "hunter2" not in str(refusal.value)


def test_an_option_that_the_driver_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="not known: colour"):
        Database.open("mysql://u:hunter2@h/ramet?colour=blue&ssl_ca=a.pem")


def test_a_url_in_a_log_has_neither_password_nor_options() -> None:
    assert redacted("mysql://u:hunter2@h/ramet?ssl_key_password=hunter3") == "mysql+pymysql://u:***@h/ramet"


def _row(database: Database, query: str) -> tuple[object, ...]:
    def work(connection: Connection) -> tuple[object, ...]:
        return tuple(connection.execute(text(query)).one())

    return database.read(counters.call(), work)


def test_a_file_is_durable_shared_and_forgets_what_is_deleted(sqlite_url: str) -> None:
    database = Database.open(sqlite_url)
    settings = [_row(database, f"PRAGMA {name}")[0] for name in ("journal_mode", "synchronous", "secure_delete")]
    assert settings == ["wal", 2, 1]
    database.close()


@pytest.mark.mariadb
def test_a_servers_defaults_do_not_matter(mariadb_server: MariaDb, mariadb_url: str) -> None:
    names = (
        "@@transaction_isolation"
        if mariadb_server.execute("SHOW VARIABLES LIKE 'transaction_isolation'")
        else "@@tx_isolation"
    )
    mariadb_server.execute(
        "SET GLOBAL sql_mode = '', GLOBAL time_zone = '+05:00', GLOBAL collation_server = latin1_bin"
    )
    try:
        database = Database.open(mariadb_url)
        assert _row(
            database,
            f"SELECT {names}, @@time_zone, @@character_set_connection, @@collation_connection, @@autocommit",
        ) == ("READ-COMMITTED", "+00:00", "utf8mb4", "utf8mb4_bin", 1)
        assert "STRICT_TRANS_TABLES" in str(_row(database, "SELECT @@sql_mode"))
        database.close()
    finally:
        mariadb_server.execute(
            "SET GLOBAL sql_mode = DEFAULT, GLOBAL time_zone = DEFAULT, GLOBAL collation_server = DEFAULT"
        )


def test_a_recursion_of_5000_levels_is_complete(database: Database) -> None:
    query = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) SELECT count(*) FROM n"
    assert _row(database, query) == (5000,)
