"""Appends of many callers in one transaction: what they share, and what they never do to each other."""

from typing import Any

import pytest
from sqlalchemy import insert, select

from ramet.session.v1 import session_pb2 as pb
from ramet_server.database.database import Database
from ramet_server.database.tables.session import session
from ramet_server.database.tables.shared import request_log
from ramet_server.domain.errors import (
    Cancelled,
    InvalidField,
    OutcomeUnknown,
    RametError,
    SessionArchived,
    SessionNotFound,
    StaleHead,
    TooLarge,
)
from ramet_server.domain.sharing import ALONE
from tests.harness.mariadb import MariaDb
from tests.harness.proxy import Cut, Proxy
from tests.session_service.holding import holding
from tests.session_service.storage import Storage, records, statements


def _request(session_id: str, text: str, **fields: Any) -> pb.AppendRecordsRequest:
    return pb.AppendRecordsRequest(session_id=session_id, records=records(text), **fields)


def _alone(storage: Storage, request: pb.AppendRecordsRequest) -> list[int]:
    return list(storage.service.AppendRecords(request, storage.call).seqs)


def test_a_group_is_two_trips_and_few_statements_however_many_it_holds(storage: Storage) -> None:
    for number in range(20):
        storage.put(f"s{number}", tags=["b", "a"])
    requests = [_request(f"s{number}", "u a", request_id=f"r{number}") for number in range(20)]
    with statements(storage.database) as seen:
        assert storage.append_together(*requests) == [(1, 2)] * 20
    assert len([text for text, _ in seen if not text.startswith("BEGIN")]) == 5
    assert storage.get("s7") == storage.service.AppendRecords(requests[7], storage.call).session


def test_members_of_one_session_go_in_the_order_they_came(storage: Storage) -> None:
    storage.put("main")
    storage.put("other")
    requests = [_request("main", "u a"), _request("other", "u"), _request("main", "u"), _request("main", "a u a")]
    assert storage.append_together(*requests) == [(1, 2), (1,), (3,), (4, 5, 6)]
    assert storage.said("main") == "u a u a u a"
    assert storage.get("main").head_seq == 6


def test_a_member_sees_what_those_before_it_did(storage: Storage) -> None:
    storage.put("main")
    requests = [
        _request("main", "u a(x,y)", turn_delta=1),
        _request("main", "t(x)", expected_head_seq=2),
        _request("main", "u", expected_head_seq=2),
        _request("main", "u", expected_head_seq=3, turn_delta=2),
    ]
    first, second, stale, last = storage.append_together(*requests)
    assert (first, second, last) == ((1, 2), (3,), (4,))
    assert isinstance(stale, StaleHead)
    assert stale.details == {"head_seq": "3"}
    assert storage.get("main").turn_count == 3
    # The broken group was marked within the same transaction.
    assert storage.fork("main", "child").incomplete_records == 2
    assert storage.said("child") == "u u"


def test_members_that_fail_leave_the_others_alone(storage: Storage) -> None:
    for name in ("first", "gone", "last"):
        storage.put(name)
    storage.archive("gone")
    storage.append("first", "u", request_id="used")
    tool = pb.Record(role=pb.ROLE_TOOL, content="no call")
    answers = storage.append_together(
        _request("first", "a", request_id="good"),
        _request("first", "u", expected_head_seq=7),
        _request("gone", "u"),
        _request("missing", "u"),
        pb.AppendRecordsRequest(session_id="first", records=[tool]),
        pb.AppendRecordsRequest(session_id="first", records=[pb.Record(role=pb.ROLE_USER, content="x" * 5_000_000)]),
        _request("first", "u", request_id="used"),
        _request("last", "u", request_id="twin"),
        _request("last", "u", request_id="twin"),
        _request("last", "a"),
    )
    kinds = [type(answer) if isinstance(answer, RametError) else answer for answer in answers]
    assert kinds == [
        (2,),
        StaleHead,
        SessionArchived,
        SessionNotFound,
        InvalidField,
        TooLarge,
        ALONE,
        (1,),
        ALONE,
        (2,),
    ]
    assert (storage.said("first"), storage.said("gone"), storage.said("last")) == ("u a", "", "u a")


def test_a_member_with_a_request_id_is_not_told_its_error_by_a_group(storage: Storage) -> None:
    storage.put("main")
    request = _request("main", "u", request_id="once", expected_head_seq=0)
    assert storage.append_together(request) == [(1,)]
    # The head moved by the very request that comes again: only the log can tell.
    assert storage.append_together(request) == [ALONE]
    assert _alone(storage, request) == [1]
    assert storage.said("main") == "u"


def test_an_expired_request_id_is_new_again_within_a_group(storage: Storage) -> None:
    storage.put("main")
    storage.append("main", "u", request_id="once")
    storage.clock.ahead = storage.clock.ahead.__class__(hours=25)
    request = _request("main", "u", request_id="once")
    assert storage.append_together(request, _request("main", "a")) == [ALONE, (2,)]
    assert _alone(storage, request) == [3]


def test_spaces_share_a_transaction_and_nothing_else(storage: Storage) -> None:
    other = Storage(storage.database, f"{storage.space}-2", storage.limits, storage.clock)
    for each in (storage, other):
        each.put("main", tags=[each.space])
    requests = [_request("main", "u", request_id="same"), _request("main", "u a", request_id="same")]
    assert storage.append_together(*requests, calls=[storage.call, other.call]) == [(1,), (1, 2)]
    assert (storage.said("main"), other.said("main")) == ("u", "u a")


def test_the_insight_goes_with_the_first_member_that_read_it(storage: Storage) -> None:
    storage.put("main")
    version = storage.put_insight("main", "look").version
    gathered = storage.service.gathers["AppendRecords"]
    requests = [_request("main", "u", consume_insight_version=version) for _ in range(3)]
    answers = gathered.run([storage.call] * 3, [gathered.read(request) for request in requests])
    assert [answer.insight_consumed for answer in answers] == [True, False, False]
    assert {answer.insight_version for answer in answers} == {version + 1}


def test_a_member_whose_open_groups_are_not_kept_beside_it_runs_alone(storage: Storage) -> None:
    storage.put("main")
    storage.put("other")
    ids = ["x" * 200 + str(number) for number in range(400)]
    for start in range(0, 400, 100):
        storage.append("main", " ".join(f"a({call_id})" for call_id in ids[start : start + 100]))
    assert storage.append_together(_request("main", "u"), _request("other", "u")) == [ALONE, (1,)]


def test_a_member_that_was_cancelled_takes_no_part(storage: Storage) -> None:
    storage.put("main")
    calls = [storage.call, storage.call]
    calls[0].cancelled.set()
    cancelled, good = storage.append_together(_request("main", "u"), _request("main", "a"), calls=calls)
    assert isinstance(cancelled, Cancelled)
    assert (good, storage.said("main")) == ((1,), "a")


@pytest.mark.mariadb
@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
def test_a_session_that_another_connection_holds_is_left_out(storage: Storage) -> None:
    for name in ("a", "held", "z"):
        storage.put(name)
    key = (session.c.space_id == storage.space) & (session.c.session_id == "held")
    requests = [_request(name, "u") for name in ("z", "held", "a", "held")]
    with holding(storage.database, select(session).where(key).with_for_update()):
        assert storage.append_together(*requests) == [(1,), ALONE, (1,), ALONE]
    assert storage.append_together(*requests) == [(2,), (1,), (2,), (2,)]
    # Now all of them are remembered.
    with holding(storage.database, select(session).where(key).with_for_update()):
        assert storage.append_together(*requests) == [(3,), ALONE, (3,), ALONE]
    assert storage.append_together(*requests) == [(4,), (3,), (4,), (4,)]


@pytest.mark.mariadb
@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
@pytest.mark.parametrize(("cut", "stored"), [(Cut.BEFORE_COMMIT, ""), (Cut.AFTER_COMMIT, "u")])
def test_a_commit_that_is_lost_is_resolved_by_each_request_id(
    storage: Storage, mariadb_server: MariaDb, cut: Cut, stored: str
) -> None:
    for name in ("a", "b", "c"):
        storage.put(name)
    requests = [_request("a", "u", request_id="ra"), _request("b", "u"), _request("c", "u", request_id="rc")]
    with Proxy(mariadb_server.port) as proxy:
        url = storage.database.engine.url.set(port=proxy.port).render_as_string(hide_password=False)
        behind = Storage(Database.open(url), storage.space, storage.limits, storage.clock)
        proxy.cut = cut
        first, second, third = behind.append_together(*requests)
        assert (first, type(second), third, proxy.cuts) == (ALONE, OutcomeUnknown, ALONE, 1)
        assert (_alone(behind, requests[0]), _alone(behind, requests[2])) == ([1], [1])
        behind.database.close()
    assert [storage.said(name) for name in ("a", "b", "c")] == ["u", stored, "u"]


def test_a_key_of_the_log_that_is_taken_meanwhile_does_no_harm(storage: Storage) -> None:
    storage.put("main")
    row = {
        "space_id": storage.space,
        "service": "session",
        "request_id": "taken",
        "method": "AppendRecords",
        "body_hash": "0" * 64,
        "outcome_json": "{}",
        "created_at": storage.clock.now(),
    }
    storage.database.write(storage.call, lambda connection: connection.execute(insert(request_log), row))
    requests = [_request("main", "u", request_id="taken"), _request("main", "a", request_id="free")]
    assert storage.append_together(*requests) == [ALONE, (1,)]
    assert storage.said("main") == "a"
