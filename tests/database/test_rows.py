"""Rows as our connections read them, beside the driver's own reading of the same answers."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pymysql
import pytest
from pymysql.constants import CLIENT
from sqlalchemy import make_url

from ramet_server.database.database import Database
from tests.harness.mariadb import MariaDb

pytestmark = pytest.mark.mariadb

_KINDS = """
    SELECT 1, -128, 18446744073709551615, 1.5e0, CAST(1.50 AS DECIMAL(5, 2)), NULL, '', 'naïve 🌱', X'00FF', b'101',
    DATE '2026-12-01', TIME '-25:00:01', CAST('[1, "ä"]' AS CHAR), TRUE, REPEAT('é', 200), REPEAT('x', 70000), NULL
"""


@pytest.fixture(scope="module")
def url(mariadb_server: MariaDb) -> Iterator[str]:
    """A database without tables."""
    url = mariadb_server.new_database()
    yield url
    mariadb_server.drop_database(url)


@pytest.fixture(scope="module")
def ours(url: str) -> Iterator[Any]:
    """A connection of ours."""
    database = Database.open(url)
    with database.engine.connect() as connection:
        yield connection.connection.driver_connection
    database.close()


@pytest.fixture(scope="module")
def theirs(url: str) -> Iterator[Any]:
    """A connection of the driver's own kind."""
    place = make_url(url)
    with pymysql.connect(
        host=place.host,
        port=place.port or 0,
        user=place.username,
        database=place.database,
        charset="utf8mb4",
        client_flag=CLIENT.MULTI_STATEMENTS,
    ) as connection:
        yield connection


def _answers(connection: Any, statement: str) -> list[tuple[Any, Any, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        answers = [(cursor.description, cursor.fetchall(), cursor.rowcount)]
        while cursor.nextset():
            answers.append((cursor.description, cursor.fetchall(), cursor.rowcount))
        return answers


@pytest.mark.parametrize(
    "statement",
    [
        _KINDS,
        "SELECT seq, IF(seq % 3, NULL, seq), REPEAT('ü', seq % 700) FROM seq_1_to_5000",
        "SELECT REPEAT('x', 300000 + seq), seq FROM seq_1_to_5",
        "SELECT REPEAT('x', 9000000), 1, REPEAT('y', 9000000) UNION ALL SELECT 'a', 2, 'b'",
        "SELECT 1 FROM seq_1_to_3 WHERE seq > 3",
        "SELECT 1, 2; DO 0; SELECT seq FROM seq_1_to_300; SELECT 'last'",
    ],
    ids=["kinds", "many", "large", "huge", "none", "several"],
)
def test_rows_are_those_of_the_driver(ours: Any, theirs: Any, statement: str) -> None:
    assert _answers(ours, statement) == _answers(theirs, statement)


def test_an_error_behind_the_first_rows_is_raised_and_leaves_the_connection_usable(ours: Any, theirs: Any) -> None:
    for connection in (ours, theirs):
        with connection.cursor() as cursor:
            with pytest.raises(pymysql.OperationalError, match="out of range"):
                cursor.execute("SELECT seq, POW(10, seq) FROM seq_1_to_5000")
            cursor.execute("SELECT 7")
            assert cursor.fetchall() == ((7,),)


def test_moments_are_in_utc(ours: Any) -> None:
    with ours.cursor() as cursor:
        cursor.execute("SELECT TIMESTAMP '2026-12-01 05:06:07.000089', TIMESTAMP '2026-12-01 05:06:07'")
        assert cursor.fetchall() == ((datetime(2026, 12, 1, 5, 6, 7, 89, UTC), datetime(2026, 12, 1, 5, 6, 7, 0, UTC)),)


@pytest.mark.parametrize("mode", ["", "NO_BACKSLASH_ESCAPES"])
def test_a_text_is_what_it_was(ours: Any, mode: str) -> None:
    characters = "".join(map(chr, range(256)))
    text = f"{characters} 🌱 '\" \"' \\\" \\' %s %(x)s %% \\x1a"
    with ours.cursor() as cursor:
        cursor.execute("SET @ramet_mode = @@sql_mode")
        cursor.execute("SET SESSION sql_mode = CONCAT(@@sql_mode, %s)", (f",{mode}",))
        try:
            cursor.execute("SELECT %s, CHAR_LENGTH(%s)", (text, text))
            assert cursor.fetchall() == ((text, len(text)),)
        finally:
            cursor.execute("SET SESSION sql_mode = @ramet_mode")
