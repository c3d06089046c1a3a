"""A hundred thousand sessions with a million records: a page costs what it costs among few.

adk-python#4621: a list page costs a constant number of indexed queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import grpc
import pytest
import sqlalchemy as sa
from google.protobuf.timestamp_pb2 import Timestamp

from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from tests.cases.bulk import EPOCH, engine_of, fill_sessions, gather_statistics, session_id
from tests.cases.measuring import statements_of, work_of
from tests.conformance.calling import within
from tests.conformance.session import making as storing
from tests.conftest import BACKENDS
from tests.harness import sqlite
from tests.harness.mariadb import MariaDb
from tests.harness.server import running_server

# Filling takes longer than a test may elsewhere, where the machine is busy.
pytestmark = pytest.mark.timeout(600)

SESSIONS, LONG, SHORT = 100_000, 500_005, 5
MOST_STATEMENTS = 8
# A page looks at no more than a thousand rows of its driving index, and at each row's tags: see work_of.
MOST_WORK = {"mysql": 6_000, "sqlite": 100_000}


class Large:
    """The large space, and a small one beside it on the same server."""

    def __init__(self, channel: grpc.Channel, engine: sa.Engine) -> None:
        self.engine = engine
        self.storage = SessionStorageStub(within(channel, "large"))
        self.small = SessionStorageStub(within(channel, "small"))


@pytest.fixture(params=BACKENDS, scope="module")
def large(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Large]:
    """The large space on each backend, filled once."""
    if request.param == "sqlite":
        folder: Path = tmp_path_factory.mktemp("large")
        url = sqlite.new_database(folder)
    else:
        mariadb: MariaDb = request.getfixturevalue("mariadb_server")
        url = mariadb.new_database()
    engine = engine_of(url)
    with running_server(url) as address, grpc.insecure_channel(address) as channel:
        with engine.begin() as connection:
            fill_sessions(connection, "large", SESSIONS, long=LONG, short=SHORT)
            fill_sessions(connection, "small", 10, long=10, short=2)
        with engine.begin() as connection:
            gather_statistics(connection)
        yield Large(channel, engine)
    engine.dispose()
    if request.param == "mariadb":
        mariadb.drop_database(url)


def at(seconds: int) -> Timestamp:
    """The moment at which the session of this number was made."""
    moment = Timestamp()
    moment.FromDatetime(EPOCH + timedelta(seconds=seconds))
    return moment


def listing(**fields: object) -> pb.ListSessionsRequest:
    """A request for a page of sessions."""
    return pb.ListSessionsRequest(**fields)  # type: ignore[arg-type]  # each test names its own fields


ORDERS = [pb.SESSION_ORDER_ID, pb.SESSION_ORDER_CREATED_AT, pb.SESSION_ORDER_LAST_ACTIVE_AT]
FILTERS = {
    "no filter": pb.SessionFilter(),
    "a status that none has": pb.SessionFilter(status=pb.SESSION_STATUS_ARCHIVED),
    "a tag that few bear": pb.SessionFilter(tags=["rare"]),
    "a tag that all bear": pb.SessionFilter(tags=["common"]),
    "a prefix that one label has": pb.SessionFilter(label_prefix="label 77777"),
    "a range of creation": pb.SessionFilter(created_from=at(50_000), created_before=at(50_150)),
    "a range of activity": pb.SessionFilter(last_active_from=at(50_000), last_active_before=at(50_150)),
}
READS: dict[str, Callable[[SessionStorageStub], object]] = {
    "one session": lambda storage: storing.get(storage, session_id(0)),
    "many sessions": lambda storage: storage.BatchGetSessions(
        pb.BatchGetSessionsRequest(session_ids=[session_id(number * 37) for number in range(1000)])
    ),
    "the oldest records": lambda storage: storage.ListRecords(
        pb.ListRecordsRequest(session_id=session_id(0), page_size=1000)
    ),
    "the newest records": lambda storage: storage.ListRecords(
        pb.ListRecordsRequest(session_id=session_id(0), page_size=1000, order=pb.RECORD_ORDER_DESCENDING)
    ),
    "records of one role": lambda storage: storage.ListRecords(
        pb.ListRecordsRequest(session_id=session_id(0), page_size=1000, roles=[pb.ROLE_USER])
    ),
    "records in the middle": lambda storage: storage.ListRecords(
        pb.ListRecordsRequest(session_id=session_id(0), page_size=1000, after_seq=250_000)
    ),
    "records of a short session": lambda storage: storing.history(storage, session_id(99_999)),
    "a context": lambda storage: storing.context(storage, session_id(0), max_records=1000),
    "slots of many sessions": lambda storage: list(
        storage.BatchGetSlots(pb.BatchGetSlotsRequest(session_ids=[session_id(n * 37) for n in range(1000)]))
    ),
}


def hold_to_bounds(large: Large, statements: list[tuple[str, object]]) -> None:
    """Few statements, each over few rows."""
    assert 0 < len(statements) <= MOST_STATEMENTS, statements
    with large.engine.connect() as connection:
        for statement, parameters in statements:
            work = work_of(connection, statement, parameters)
            assert work <= MOST_WORK[large.engine.dialect.name], f"{work}: {statement}"


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", FILTERS)
def test_a_page_of_sessions_costs_few_statements_over_few_rows(
    large: Large, name: str, order: pb.SessionOrder.ValueType, descending: bool
) -> None:
    request = listing(filter=FILTERS[name], order=order, descending=descending)
    for _ in range(3):
        with statements_of("session") as seen:
            page = large.storage.ListSessions(request)
        hold_to_bounds(large, list(seen))
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token


@pytest.mark.parametrize("name", READS)
def test_a_read_costs_few_statements_over_few_rows(large: Large, name: str) -> None:
    with statements_of("s") as seen:
        READS[name](large.storage)
    hold_to_bounds(large, [entry for entry in seen if "FROM" in entry[0]])


def test_the_measure_tells_a_search_from_a_scan(large: Large) -> None:
    by_text = "SELECT session_id FROM session WHERE metadata_json = 'x'"
    by_key = f"SELECT session_id FROM session WHERE space_id = 'large' AND session_id = '{session_id(7)}'"
    with large.engine.connect() as connection:
        assert work_of(connection, by_text, ()) > 2 * MOST_WORK[large.engine.dialect.name]
        assert work_of(connection, by_key, ()) < 200


def whole_list(storage: SessionStorageStub, request: pb.ListSessionsRequest) -> list[str]:
    """The ids of a whole list, through all its pages."""
    found: list[str] = []
    while True:
        page = storage.ListSessions(request)
        found += [session.id for session in page.sessions]
        if not page.next_page_token:
            return found
        request.page_token = page.next_page_token


def test_a_long_list_is_complete(large: Large) -> None:
    within_a_day = pb.SessionFilter(created_from=at(10_000), created_before=at(15_000))
    request = listing(filter=within_a_day, order=pb.SESSION_ORDER_CREATED_AT, descending=True, page_size=1000)
    assert whole_list(large.storage, request) == [session_id(number) for number in range(14_999, 9_999, -1)]


def test_a_filter_finds_what_is_far_apart(large: Large) -> None:
    request = listing(filter=pb.SessionFilter(tags=["rare"]), order=pb.SESSION_ORDER_CREATED_AT, page_size=1000)
    assert whole_list(large.storage, request) == [session_id(number) for number in range(999, SESSIONS, 1000)]


WRITES: dict[str, Callable[[SessionStorageStub], object]] = {
    "append": lambda storage: storing.append(storage, session_id(0), storing.user(), request_id="append"),
    "fork": lambda storage: storing.fork(storage, session_id(0), "fork"),
    "erase": lambda storage: storage.EraseRecord(pb.EraseRecordRequest(session_id=session_id(0), seq=3)),
    "trim": lambda storage: storing.trim(storage, session_id(0), 10),
    "update": lambda storage: storing.put(storage, session_id(0), label="new"),
}


@pytest.mark.parametrize("name", ["append", "fork", "erase", "update"])
def test_a_write_to_a_long_session_takes_as_many_statements_as_one_to_a_short_session(large: Large, name: str) -> None:
    with statements_of("s") as among_few:
        WRITES[name](large.small)
    with statements_of("s") as among_many:
        WRITES[name](large.storage)
    assert [statement for statement, _ in among_many] == [statement for statement, _ in among_few]
