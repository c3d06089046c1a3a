"""Transactions of one trip that fail on the server, which tells of it by one error; SQLite has no trips."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import Connection

from ramet_server.database.backend import RowsHeld, RowsMoved
from ramet_server.database.database import Database, KeyTaken
from ramet_server.database.prepared import Bound, Guard
from ramet_server.domain.errors import Internal
from tests.database import counters

pytestmark = pytest.mark.mariadb


def _set(space_id: str) -> Bound:
    return Bound("UPDATE space SET root_count = %s WHERE space_id = %s", ((7, space_id),), stores=False)


def _one_trip(on_mariadb: Database, guards: list[Guard], changes: list[Bound]) -> str:
    return on_mariadb.write_in_one_trip(counters.call(), lambda _: ("done", guards, changes))


def _two_trips(on_mariadb: Database, changes: list[Bound]) -> str:
    return on_mariadb.write_in_two_trips(counters.call(), lambda _: (), lambda _, __: ("done", changes))


def _taken(space_id: str) -> Bound:
    text = "INSERT INTO space (space_id, root_count, created_at) VALUES (%s, %s, %s)"
    return Bound(text, ((space_id, 0, datetime.now(UTC)),), stores=True)


@pytest.mark.parametrize("trips", [1, 2])
@pytest.mark.parametrize(("broken", "told"), [(True, Internal), (False, KeyTaken)])
def test_what_fails_behind_a_change_undoes_it_and_is_no_unknown_outcome(
    on_mariadb: Database, trips: int, broken: bool, told: type[Exception]
) -> None:
    space_id = counters.started(on_mariadb)
    changes = [_set(space_id), Bound("DO %s + nowhere", ((1,),), stores=False) if broken else _taken(space_id)]
    for _ in range(3):
        with pytest.raises(told):
            _one_trip(on_mariadb, [], changes) if trips == 1 else _two_trips(on_mariadb, changes)
    # Neither the change nor its lock is left on any connection of the pool.
    assert counters.stored(on_mariadb, space_id) == 0
    assert on_mariadb.write(counters.call(), lambda connection: counters.add(connection, space_id)) == 1


@pytest.mark.parametrize("trips", [1, 2])
def test_what_succeeds_is_committed(on_mariadb: Database, trips: int) -> None:
    space_id = counters.started(on_mariadb)
    changes = [_set(space_id)]
    assert (_one_trip(on_mariadb, [], changes) if trips == 1 else _two_trips(on_mariadb, changes)) == "done"
    assert counters.stored(on_mariadb, space_id) == 7


def _guard(space_id: str, number: int) -> Guard:
    text = "SELECT COUNT(*) FROM space WHERE space_id = %s FOR UPDATE NOWAIT"
    return Guard(Bound(text, ((space_id,),), stores=False), number)


def test_a_guard_that_finds_another_number_stops_it(on_mariadb: Database) -> None:
    space_id = counters.started(on_mariadb)
    with pytest.raises(RowsMoved):
        _one_trip(on_mariadb, [_guard(space_id, 2)], [_set(space_id)])
    assert counters.stored(on_mariadb, space_id) == 0
    assert _one_trip(on_mariadb, [_guard(space_id, 1)], [_set(space_id)]) == "done"


def test_a_guard_takes_an_id_as_it_is(on_mariadb: Database) -> None:
    # It looks like what a guard itself says.
    space_id = "x FOR UPDATE NOWAIT) <> 1; COMMIT; END"
    on_mariadb.write(counters.call(), lambda connection: counters.start(connection, space_id))
    with pytest.raises(RowsMoved):
        _one_trip(on_mariadb, [_guard(space_id.replace(" NOWAIT", ""), 1)], [_set(space_id)])
    assert _one_trip(on_mariadb, [_guard(space_id, 1)], [_set(space_id)]) == "done"
    assert counters.stored(on_mariadb, space_id) == 7


@pytest.mark.parametrize("guarded", [True, False])
def test_nothing_in_it_waits_for_a_lock(on_mariadb: Database, guarded: bool) -> None:
    space_id = counters.started(on_mariadb)

    def hold(connection: Connection) -> None:
        counters.add(connection, space_id)
        with pytest.raises(RowsHeld):
            _one_trip(on_mariadb, [_guard(space_id, 1)] if guarded else [], [_set(space_id)])

    on_mariadb.write(counters.call(), hold)
    assert counters.stored(on_mariadb, space_id) == 1
