"""Appends of many clients over real channels: order, locked sessions, deadlines, and a full queue."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2
from sqlalchemy import insert, select
from sqlalchemy.engine import make_url

from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from ramet_server.commands.services import SESSION
from ramet_server.database.database import Database
from ramet_server.database.tables.session import session
from ramet_server.database.tables.shared import request_log
from ramet_server.serving.settings import Settings
from tests.harness.mariadb import MariaDb
from tests.harness.proxy import Cut, Proxy
from tests.harness.server import running_server
from tests.harness.waiting import wait_until
from tests.session_service.holding import holding
from tests.session_service.storage import TurnedClock, records

_PATIENCE_S = 60

_NO_LOCK_WAIT_S = 8
"""Less than a statement waits for a lock."""


class _Client:
    """One channel to a server."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.stub = SessionStorageStub(channel)

    def put(self, *names: str) -> None:
        """Creates sessions."""
        for name in names:
            self.stub.PutSession(pb.PutSessionRequest(session=pb.Session(id=name)))

    def append(self, session_id: str, text: str = "u", timeout: float = _PATIENCE_S, **fields: Any) -> Any:
        """Begins an append; its ``result`` is the reply."""
        request = pb.AppendRecordsRequest(session_id=session_id, records=records(text), **fields)
        return self.stub.AppendRecords.future(request, timeout=timeout)

    def said(self, session_id: str) -> str:
        """Tells the contents of all records."""
        page = self.stub.ListRecords(pb.ListRecordsRequest(session_id=session_id, page_size=1000))
        return " ".join(record.content for record in page.records)


@contextmanager
def _served(url: str, **settings: Any) -> Iterator[_Client]:
    chosen = Settings(log_level="error", **settings)
    with running_server(url, [SESSION], settings=chosen) as address, grpc.insecure_channel(address) as channel:
        yield _Client(channel)


@contextmanager
def _plugged(url: str) -> Iterator[None]:
    """Keeps every group waiting that holds the request_id ``plug``, until the block ends."""
    row = {
        "space_id": "default",
        "service": "session",
        "request_id": "plug",
        "method": "",
        "body_hash": "",
        "outcome_json": "{}",
        "created_at": TurnedClock().now(),
    }
    database = Database.open(url)
    try:
        with holding(database, insert(request_log).values(row)):
            yield
    finally:
        database.close()


def test_sixty_four_clients_on_few_sessions_get_dense_seqs_in_order(database_url: str) -> None:
    with _served(database_url) as client:
        names = ["a", "b", "c"]
        client.put(*names)

        def work(number: int) -> list[tuple[int, str]]:
            name = names[number % 3]
            given = []
            for turn in range(4):
                content = f"{number}-{turn}"
                record = pb.Record(role=pb.ROLE_USER, content=content)
                request = pb.AppendRecordsRequest(session_id=name, records=[record] * 2, request_id=f"r{content}")
                seqs = client.stub.AppendRecords(request, timeout=_PATIENCE_S).seqs
                given += [(seq, content) for seq in seqs]
            return given

        with ThreadPoolExecutor(64) as threads:
            given = list(threads.map(work, range(64)))
        for place, name in enumerate(names):
            of_session = [each for number in range(place, 64, 3) for each in given[number]]
            assert sorted(seq for seq, _ in of_session) == list(range(1, len(of_session) + 1))
            assert client.said(name).split() == [content for _, content in sorted(of_session)]
        assert all(seqs == sorted(seqs) for seqs in given)


@pytest.mark.mariadb
def test_a_session_that_is_held_delays_nobody_else_and_keeps_its_order(mariadb_url: str) -> None:
    with _served(mariadb_url) as client:
        client.put("held", "free")
        database = Database.open(mariadb_url)
        key = (session.c.space_id == "default") & (session.c.session_id == "held")
        with holding(database, select(session).where(key).with_for_update()):
            held = [client.append("held", word, request_id=f"h{place}") for place, word in enumerate("uau")]
            late = client.append("held", "a", timeout=0.5)
            for _ in range(5):
                assert client.append("free", timeout=_NO_LOCK_WAIT_S).result().seqs
            # What is held is still waited for, but for the one whose time was short.
            assert late.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            assert not any(append.done() for append in held)
        assert [list(append.result().seqs) for append in held] == [[1], [2], [3]]
        database.close()
        assert client.said("held") == "u a u"


def test_beside_a_full_queue_a_call_is_refused_at_once(database_url: str) -> None:
    with _served(database_url, queue_size=3) as client:
        client.put("main")
        with _plugged(database_url):
            first = client.append("main", request_id="plug")
            # Its answer tells that the first has come, and is at work.
            client.stub.GetServerInfo(pb.GetServerInfoRequest())
            others = [client.append("main", "a") for _ in range(8)]
            wait_until(lambda: sum(append.done() for append in others) >= 5, "the refusals")
            refused = [append for append in others if append.done()]
        assert {append.code() for append in refused} == {grpc.StatusCode.RESOURCE_EXHAUSTED}
        assert len(refused) == 5
        status = status_pb2.Status.FromString(dict(refused[0].trailing_metadata())["grpc-status-details-bin"])
        info, retry = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo()
        assert status.details[0].Unpack(info)
        assert status.details[1].Unpack(retry)
        assert (info.reason, info.metadata["queue_size"]) == ("OVERLOADED", "3")
        assert retry.retry_delay == Duration(nanos=250_000_000)
        done = [append.result().seqs for append in (first, *others) if append not in refused]
        assert sorted(seq for seqs in done for seq in seqs) == [1, 2, 3, 4]


def test_a_call_that_is_cancelled_while_it_waits_is_not_done(database_url: str) -> None:
    with _served(database_url) as client:
        client.put("main")
        with _plugged(database_url):
            first = client.append("main", "s", request_id="plug")
            client.stub.GetServerInfo(pb.GetServerInfoRequest())
            gone, late, stays = client.append("main"), client.append("main", timeout=0.2), client.append("main", "a")
            client.stub.GetServerInfo(pb.GetServerInfoRequest())
            gone.cancel()
            assert late.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            # Once more, so that the server has heard of the one who left.
            client.stub.GetServerInfo(pb.GetServerInfoRequest())
        assert [list(append.result().seqs) for append in (first, stays)] == [[1], [2]]
        assert client.said("main") == "s a"


@pytest.mark.mariadb
@pytest.mark.parametrize("cut", [Cut.BEFORE_COMMIT, Cut.AFTER_COMMIT])
def test_clients_whose_commit_was_lost_are_answered_once_each(
    mariadb_server: MariaDb, mariadb_url: str, cut: Cut
) -> None:
    with Proxy(mariadb_server.port) as proxy:
        url = make_url(mariadb_url).set(port=proxy.port).render_as_string(hide_password=False)
        with _served(url) as client:
            client.put(*(f"s{number}" for number in range(16)))
            proxy.cut = cut
            appends = [client.append(f"s{number}", "u a", request_id=f"r{number}") for number in range(16)]
            assert [list(append.result().seqs) for append in appends] == [[1, 2]] * 16
            assert proxy.cuts == 1
            assert {client.said(f"s{number}") for number in range(16)} == {"u a"}
