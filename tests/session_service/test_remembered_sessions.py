"""Groups of appends to sessions that are remembered: one trip, and never over what has changed since."""

from collections.abc import Callable
from typing import Any

import pytest

from ramet.session.v1 import session_pb2 as pb
from ramet_server.database.database import Database
from ramet_server.domain.errors import OutcomeUnknown, SessionArchived, SessionNotFound, StaleHead
from ramet_server.domain.sharing import ALONE
from tests.harness.mariadb import MariaDb
from tests.harness.proxy import Cut, Proxy
from tests.session_service.storage import Storage, records, statements


def _request(session_id: str, text: str = "u", **fields: Any) -> pb.AppendRecordsRequest:
    return pb.AppendRecordsRequest(session_id=session_id, records=records(text), **fields)


def _count(storage: Storage, *requests: pb.AppendRecordsRequest) -> int:
    """Does a group in which nobody fails; returns how many statements it took beside BEGIN and COMMIT."""
    with statements(storage.database) as seen:
        assert all(isinstance(answer, tuple) for answer in storage.append_together(*requests))
    return len([text for text, _ in seen if text not in ("BEGIN", "BEGIN IMMEDIATE", "COMMIT")])


@pytest.fixture
def elsewhere(storage: Storage) -> Storage:
    """The same sessions as another process serves them, with a memory of its own."""
    url = storage.database.engine.url.render_as_string(hide_password=False)
    return Storage(Database.open(url), storage.space, storage.limits, storage.clock)


def test_a_session_that_was_appended_to_is_not_read_again(storage: Storage) -> None:
    for name in ("main", "other"):
        storage.put(name, tags=["b", "a"], metadata_json='{"k": 1}')
    requests = [_request("main", request_id="r1"), _request("other", "u a", request_id="r2")]
    # What locks and reads sessions and tags, then records, sessions and log.
    assert _count(storage, *requests) == 5
    # The guard takes the place of both reads.
    assert _count(storage, _request("main", request_id="r3"), _request("other", request_id="r4")) == 4
    assert (storage.get("main").head_seq, storage.get("other").head_seq) == (2, 3)
    replay = storage.service.AppendRecords(_request("main", request_id="r3"), storage.call)
    assert (list(replay.seqs), replay.session) == ([2], storage.get("main"))


def test_a_reply_over_a_remembered_session_tells_all_of_it(storage: Storage) -> None:
    storage.put("main", tags=["b", "a"], label="l", metadata_json='{"k": 1}')
    gathered = storage.service.gathers["AppendRecords"]
    for seq in (1, 2):
        (appended,) = gathered.run([storage.call], [gathered.read(_request("main", turn_delta=1))])
        assert gathered.write(appended).session == storage.get("main")
        assert (appended.session.turn_count, appended.session.tags) == (seq, ("a", "b"))


def _recreate(storage: Storage) -> None:
    storage.delete("main")
    storage.put("main", "u u u")


_CHANGES: dict[str, tuple[Callable[[Storage], object], Any]] = {
    "nothing": (lambda other: other.get("main"), (4,)),
    "append": (lambda other: other.append("main", "a"), (5,)),
    "tags": (lambda other: other.put("main", tags=["new"]), (4,)),
    "label": (lambda other: other.put("main", label="new"), (4,)),
    "archive": (lambda other: other.archive("main"), SessionArchived),
    "rewind": (lambda other: other.truncate("main", 1), (5,)),
    "trim": (lambda other: other.trim("main", 1), (4,)),
    "delete": (lambda other: other.delete("main"), SessionNotFound),
    "delete and create": (_recreate, (4,)),
}


@pytest.mark.parametrize("change", _CHANGES)
def test_what_another_process_changed_meanwhile_is_seen(storage: Storage, elsewhere: Storage, change: str) -> None:
    storage.put("main", "u")
    storage.put("other")
    assert storage.append_together(_request("main", "u u"), _request("other")) == [(2, 3), (1,)]
    make, expected = _CHANGES[change]
    make(elsewhere)
    first, second = storage.append_together(_request("main", "a"), _request("other"))
    assert second == (2,)
    if isinstance(expected, tuple):
        assert first == expected
        gathered = storage.service.gathers["AppendRecords"]
        (appended,) = gathered.run([storage.call], [gathered.read(_request("main"))])
        assert gathered.write(appended).session == elsewhere.get("main")
    else:
        assert isinstance(first, expected)
    assert elsewhere.seqs("other") == [1, 2]
    elsewhere.database.close()


def test_no_error_is_told_of_what_is_only_remembered(storage: Storage, elsewhere: Storage) -> None:
    storage.put("main")
    assert storage.append_together(_request("main")) == [(1,)]
    elsewhere.append("main", "a")
    stale, good = storage.append_together(_request("main", expected_head_seq=1), _request("main", expected_head_seq=2))
    assert isinstance(stale, StaleHead)
    assert good == (3,)
    elsewhere.append("main", "a")
    assert storage.append_together(_request("main", expected_head_seq=4)) == [(5,)]
    elsewhere.database.close()


def test_what_this_process_changed_itself_is_not_tried_in_vain(storage: Storage) -> None:
    storage.put("main")
    storage.append_together(_request("main"))
    for change in (
        lambda: storage.put("main", label="new"),
        lambda: storage.append("main", "u"),
        lambda: storage.truncate("main", 1),
    ):
        change()
        assert _count(storage, _request("main")) == 4
        assert _count(storage, _request("main")) == 3


def test_the_insight_is_consumed_over_a_remembered_session_too(storage: Storage) -> None:
    storage.put("main")
    storage.append_together(_request("main"))
    version = storage.put_insight("main", "look").version
    assert storage.append_together(_request("main", consume_insight_version=version)) == [(2,)]
    assert not storage.insight("main").HasField("content")


def test_a_session_with_large_metadata_is_not_remembered(storage: Storage) -> None:
    storage.put("main", metadata_json=f'{{"k": "{"x" * 3000}"}}')
    assert [_count(storage, _request("main")) for _ in range(2)] == [4, 4]


@pytest.mark.mariadb
@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
@pytest.mark.parametrize(("cut", "stored"), [(Cut.BEFORE_COMMIT, "u"), (Cut.AFTER_COMMIT, "u a")])
def test_a_single_trip_that_is_lost_is_resolved_by_each_request_id(
    storage: Storage, mariadb_server: MariaDb, cut: Cut, stored: str
) -> None:
    names = ("a", "b", "c")
    for name in names:
        storage.put(name)
    requests = [_request("a", "a", request_id="ra"), _request("b", "a"), _request("c", "a", request_id="rc")]
    with Proxy(mariadb_server.port) as proxy:
        url = storage.database.engine.url.set(port=proxy.port).render_as_string(hide_password=False)
        behind = Storage(Database.open(url), storage.space, storage.limits, storage.clock)
        assert behind.append_together(*[_request(name) for name in names]) == [(1,)] * 3
        proxy.cut = cut
        first, second, third = behind.append_together(*requests)
        assert (first, type(second), third, proxy.cuts) == (ALONE, OutcomeUnknown, ALONE, 1)
        for request in (requests[0], requests[2]):
            assert list(behind.service.AppendRecords(request, behind.call).seqs) == [2]
        behind.database.close()
    assert [storage.said(name) for name in names] == ["u a", stored, "u a"]
