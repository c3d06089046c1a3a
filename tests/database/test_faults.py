"""Each driver's error means one thing, and its text stays in the log."""

import sqlite3

import pymysql
import pytest
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from ramet_server.database.faults import Fault, classify, is_duplicate, refusal, translated
from ramet_server.domain.errors import DatabaseUnavailable, Internal, RametError, TooLarge, WriteConflict


def _mysql(number: int) -> DBAPIError:
    cause = pymysql.OperationalError(number, "hunter2 at 10.0.0.1")
    return OperationalError("INSERT INTO secret", {"a": "hunter2"}, cause)


def _sqlite(code: int) -> DBAPIError:
    cause = sqlite3.OperationalError("hunter2")
    cause.sqlite_errorcode = code
    return OperationalError("INSERT INTO secret", {"a": "hunter2"}, cause)


@pytest.mark.parametrize(
    ("error", "fault", "told"),
    [
        (_mysql(1213), Fault.RACE, WriteConflict),
        (_mysql(1205), Fault.RACE, WriteConflict),
        (_mysql(1062), Fault.DUPLICATE, Internal),
        (_mysql(1040), Fault.AWAY, DatabaseUnavailable),
        (_mysql(2003), Fault.AWAY, DatabaseUnavailable),
        (_mysql(2006), Fault.LOST, DatabaseUnavailable),
        (_mysql(2013), Fault.LOST, DatabaseUnavailable),
        (_mysql(1053), Fault.LOST, DatabaseUnavailable),
        (_mysql(1317), Fault.INTERRUPTED, DatabaseUnavailable),
        (_mysql(1290), Fault.NO_WRITES, DatabaseUnavailable),
        (_mysql(1153), Fault.TOO_LARGE, TooLarge),
        (_mysql(1064), Fault.OTHER, Internal),
        (_sqlite(sqlite3.SQLITE_BUSY), Fault.RACE, WriteConflict),
        (_sqlite(sqlite3.SQLITE_BUSY_SNAPSHOT), Fault.RACE, WriteConflict),
        (_sqlite(sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY), Fault.DUPLICATE, Internal),
        (_sqlite(sqlite3.SQLITE_CONSTRAINT_NOTNULL), Fault.OTHER, Internal),
        (_sqlite(sqlite3.SQLITE_FULL), Fault.NO_WRITES, DatabaseUnavailable),
        (_sqlite(sqlite3.SQLITE_READONLY_DIRECTORY), Fault.NO_WRITES, DatabaseUnavailable),
        (_sqlite(sqlite3.SQLITE_IOERR_FSYNC), Fault.AWAY, DatabaseUnavailable),
        (_sqlite(sqlite3.SQLITE_INTERRUPT), Fault.INTERRUPTED, DatabaseUnavailable),
        (_sqlite(sqlite3.SQLITE_ERROR), Fault.OTHER, Internal),
        (PoolTimeout("hunter2"), Fault.AWAY, DatabaseUnavailable),
    ],
)
def test_an_error_means_one_thing_and_tells_nothing(
    error: DBAPIError | PoolTimeout, fault: Fault, told: type[RametError]
) -> None:
    assert classify(error) is fault
    answer = refusal(error)
    assert type(answer) is told
    for secret in ("hunter2", "secret", "INSERT", "10.0.0.1", "(", "sqlite", "mysql"):
        assert secret not in str(answer).lower()
    if isinstance(error, DBAPIError):
        assert is_duplicate(error) is (fault is Fault.DUPLICATE)


def test_a_translated_block_lets_other_errors_pass() -> None:
    with pytest.raises(DatabaseUnavailable), translated():
        raise _mysql(2003)
    with pytest.raises(KeyError), translated():
        raise KeyError
