"""Mutations that take effect once, with real races and a real COMMIT that is lost."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import TypeVar

import pytest
from sqlalchemy import Connection, func, select

from ramet_server.database.database import Database
from ramet_server.database.request_log import SqlRequestLog, purge_expired
from ramet_server.database.tables.shared import request_log
from ramet_server.domain.call import Call
from ramet_server.domain.errors import RequestIdReused, StaleHead
from ramet_server.domain.idempotency import Mutation, Outcome, body_hash, once
from tests.database import counters
from tests.harness.mariadb import MariaDb
from tests.harness.proxy import Cut, Proxy

T = TypeVar("T")

_HOURS = 24


@dataclass
class _Clock:
    moment: datetime = field(default_factory=lambda: datetime.now(UTC))

    def now(self) -> datetime:
        return self.moment


@dataclass
class _Unit:
    connection: Connection
    requests: SqlRequestLog


@dataclass
class _Store:
    """A store as the services have one, over counters."""

    database: Database
    clock: _Clock = field(default_factory=_Clock)
    service: str = "session"

    def read(self, call: Call, fn: Callable[[_Unit], T]) -> T:
        return self.database.read(call, lambda connection: fn(self._unit(call, connection)))

    def write(self, call: Call, fn: Callable[[_Unit], T]) -> T:
        return self.database.write(call, lambda connection: fn(self._unit(call, connection)))

    def _unit(self, call: Call, connection: Connection) -> _Unit:
        return _Unit(connection, SqlRequestLog(connection, call.space, self.service, self.clock, _HOURS))


def _mutation(request_id: str | None, body: bytes = b"body") -> Mutation:
    return Mutation(request_id, "Add", body_hash("Add", body))


def _add(store: _Store, space_id: str, mutation: Mutation, expected: int | None = None) -> str:
    """Adds one, once; the expected value plays the part of an expected head."""

    def work(unit: _Unit) -> tuple[str, Outcome]:
        new = counters.add(unit.connection, space_id)
        if expected is not None and new != expected + 1:
            raise StaleHead("The head moved.", details={"head_seq": str(new - 1)})
        return f"first {new}", {"value": new}

    return once(
        store,
        counters.call(30, space_id),
        mutation,
        work,
        lambda _, outcome: f"again {outcome['value']}",
    )


def test_a_repeated_request_changes_nothing(database: Database) -> None:
    store, space_id = _Store(database), counters.started(database)
    assert _add(store, space_id, _mutation("r")) == "first 1"
    assert _add(store, space_id, _mutation("r")) == "again 1"
    assert counters.stored(database, space_id) == 1


def test_another_body_is_refused_and_changes_nothing(database: Database) -> None:
    store, space_id = _Store(database), counters.started(database)
    _add(store, space_id, _mutation("r"))
    with pytest.raises(RequestIdReused):
        _add(store, space_id, _mutation("r", b"other"))
    assert counters.stored(database, space_id) == 1


def test_the_same_id_in_another_space_or_service_is_another_request(database: Database) -> None:
    space_id, other_space = counters.started(database), counters.started(database)
    for store, where in [
        (_Store(database), space_id),
        (_Store(database, service="tree"), space_id),
        (_Store(database), other_space),
    ]:
        assert _add(store, where, _mutation("r")).startswith("first")
    assert _add(_Store(database), space_id, _mutation("R")) == "first 3"


@pytest.mark.parametrize("expected", [None, 0])
def test_the_same_request_on_many_connections_at_one_moment_takes_effect_once(
    database: Database, expected: int | None
) -> None:
    store, racers = _Store(database), 4
    with ThreadPoolExecutor(racers) as threads:
        for _ in range(15):
            space_id = counters.started(database)
            start = Barrier(racers, timeout=30)

            def race(_: int, space_id: str = space_id, start: Barrier = start) -> str:
                start.wait()
                return _add(store, space_id, _mutation("r"), expected)

            answers = sorted(threads.map(race, range(racers)))
            assert answers == ["again 1"] * (racers - 1) + ["first 1"]
            assert counters.stored(database, space_id) == 1


def test_requests_that_share_only_their_id_meet_at_the_key(database: Database) -> None:
    # They lock different rows, so nothing but the log's unique key can stop the second one.
    store, racers = _Store(database), 4
    with ThreadPoolExecutor(racers) as threads:
        for _ in range(10):
            rows = [counters.started(database) for _ in range(racers)]
            start = Barrier(racers, timeout=30)
            call_space = counters.call().space

            def race(row: str, call_space: str = call_space, start: Barrier = start) -> str:
                def work(unit: _Unit) -> tuple[str, Outcome]:
                    return f"first {counters.add(unit.connection, row)}", {"value": 1}

                start.wait()
                call = counters.call(30, call_space)
                return once(store, call, _mutation("r"), work, lambda _, outcome: f"again {outcome['value']}")

            assert sorted(threads.map(race, rows)) == ["again 1"] * (racers - 1) + ["first 1"]
            assert sum(counters.stored(database, row) or 0 for row in rows) == 1


def test_an_expired_id_is_new_again_and_then_remembered(database: Database) -> None:
    store, space_id = _Store(database), counters.started(database)
    _add(store, space_id, _mutation("r"))
    store.clock.moment += timedelta(hours=_HOURS) - timedelta(microseconds=1)
    assert _add(store, space_id, _mutation("r")) == "again 1"
    store.clock.moment += timedelta(microseconds=1)
    assert _add(store, space_id, _mutation("r", b"other")) == "first 2"
    assert _add(store, space_id, _mutation("r", b"other")) == "again 2"


def test_two_requests_that_find_an_expired_id_take_effect_once(database: Database) -> None:
    store = _Store(database)
    with ThreadPoolExecutor(2) as threads:
        for _ in range(10):
            space_id = counters.started(database)
            _add(store, space_id, _mutation("r", b"old"))
            store.clock.moment += timedelta(hours=_HOURS)
            start = Barrier(2, timeout=30)

            def race(_: int, space_id: str = space_id, start: Barrier = start) -> str:
                start.wait()
                return _add(store, space_id, _mutation("r"))

            assert sorted(threads.map(race, range(2))) == ["again 2", "first 2"]


def test_an_error_is_not_remembered(database: Database) -> None:
    store, space_id = _Store(database), counters.started(database)
    with pytest.raises(StaleHead):
        _add(store, space_id, _mutation("r"), expected=7)
    assert _add(store, space_id, _mutation("r"), expected=0) == "first 1"


def test_a_purge_takes_the_oldest_expired_rows_up_to_its_limit(database: Database) -> None:
    store, space_id = _Store(database), counters.started(database)
    # Older than what any other test wrote.
    store.clock.moment = datetime(2020, 1, 1, tzinfo=UTC)
    for number in range(5):
        _add(store, space_id, _mutation(f"r{number}"))
        store.clock.moment += timedelta(hours=1)
    before = datetime(2020, 1, 1, 3, tzinfo=UTC)
    query = select(request_log.c.request_id).where(request_log.c.space_id == space_id)

    def purge() -> int:
        return database.write(counters.call(), lambda connection: purge_expired(connection, before, 3))

    assert [purge(), purge(), purge()] == [3, 1, 0]
    assert database.read(counters.call(), lambda connection: connection.execute(query).scalars().all()) == ["r4"]


@pytest.mark.mariadb
@pytest.mark.parametrize(("cut", "answer"), [(Cut.BEFORE_COMMIT, "first 1"), (Cut.AFTER_COMMIT, "again 1")])
def test_a_commit_whose_answer_is_lost_takes_effect_once(
    mariadb_server: MariaDb, database: Database, cut: Cut, answer: str
) -> None:
    url = database.engine.url
    if url.port is None:
        # A file has no connection to lose, so the same request twice must do.
        assert _add(_Store(database), counters.started(database), _mutation("r")) == "first 1"
        return
    space_id = counters.started(database)
    with Proxy(mariadb_server.port) as proxy:
        behind = Database.open(url.set(port=proxy.port).render_as_string(hide_password=False))
        proxy.cut = cut
        assert _add(_Store(behind), space_id, _mutation("r")) == answer
        assert proxy.cuts == 1
        behind.close()
    assert counters.stored(database, space_id) == 1
    assert _add(_Store(database), space_id, _mutation("r")) == "again 1"


def test_an_outcome_holds_no_more_than_it_was_given(database: Database) -> None:
    store, space_id = _Store(database), counters.started(database)
    _add(store, space_id, _mutation("r"))
    columns = (request_log.c.method, request_log.c.outcome_json, func.length(request_log.c.body_hash))
    query = select(*columns).where(request_log.c.space_id == space_id)
    row = database.read(counters.call(), lambda connection: connection.execute(query).one())
    assert tuple(row) == ("Add", '{"value":1}', 64)
