"""Appends: seqs, races, groups that break, and the insight that a turn consumes."""

import pytest

from ramet_server.domain.errors import RequestIdReused, SessionNotFound, StaleHead
from tests.session_service.storage import Storage, at_once


def test_fifty_parallel_appends_to_a_new_session_give_one_to_fifty(storage: Storage) -> None:
    storage.put("main")
    replies = at_once(50, lambda number: storage.append("main", f"u{number}"))
    assert sorted(seq for reply in replies for seq in reply.seqs) == list(range(1, 51))
    assert storage.seqs("main") == list(range(1, 51))
    assert sorted(storage.said("main").split()) == sorted(f"u{number}" for number in range(50))


def test_of_parallel_appends_with_one_expected_head_one_wins(storage: Storage) -> None:
    storage.put("main", "u u")

    def append(number: int) -> str:
        try:
            storage.append("main", f"u{number} u", expected_head_seq=2)
        except StaleHead as stale:
            return stale.details["head_seq"]
        return "won"

    assert sorted(at_once(8, append)) == ["4"] * 7 + ["won"]
    assert storage.seqs("main") == [1, 2, 3, 4]


def test_parallel_twins_of_one_request_append_once(storage: Storage) -> None:
    storage.put("main")
    replies = at_once(8, lambda _: storage.append("main", "u a", request_id="twin", turn_delta=1))
    assert {tuple(reply.seqs) for reply in replies} == {(1, 2)}
    assert storage.seqs("main") == [1, 2]
    assert storage.get("main").turn_count == 1


def test_a_repeat_with_another_body_is_refused_and_changes_nothing(storage: Storage) -> None:
    storage.put("main")
    storage.append("main", "u", request_id="once")
    with pytest.raises(RequestIdReused):
        storage.append("main", "a", request_id="once")
    assert storage.said("main") == "u"


def test_a_repeat_after_the_session_was_recreated_tells_the_first_seqs(storage: Storage) -> None:
    storage.put("main")
    storage.append("main", "u u", request_id="once")
    storage.delete("main")
    gone = storage.append("main", "u u", request_id="once")
    assert list(gone.seqs) == [1, 2]
    assert not gone.HasField("session")
    storage.put("main")
    again = storage.append("main", "u u", request_id="once")
    assert list(again.seqs) == [1, 2]
    assert again.session.head_seq == 0
    assert storage.seqs("main") == []


def test_an_expired_request_id_is_new_again(storage: Storage) -> None:
    storage.put("main")
    storage.append("main", "u", request_id="once")
    storage.clock.ahead = storage.clock.ahead.__class__(hours=25)
    assert list(storage.append("main", "u", request_id="once").seqs) == [2]


def test_a_failed_append_leaves_nothing(storage: Storage) -> None:
    with pytest.raises(SessionNotFound):
        storage.append("main", "u", request_id="early")
    storage.put("main")
    assert list(storage.append("main", "u", request_id="early").seqs) == [1]


def test_a_turn_consumes_its_insight_once_among_parallel_turns(storage: Storage) -> None:
    storage.put("main")
    version = storage.put_insight("main", "look here").version
    replies = at_once(6, lambda _: storage.append("main", "u a", consume_insight_version=version))
    assert [reply.insight_consumed for reply in replies].count(True) == 1
    assert {reply.insight_version for reply in replies} == {version + 1}
    assert not storage.insight("main").HasField("content")


def test_a_newer_insight_stays(storage: Storage) -> None:
    storage.put("main")
    version = storage.put_insight("main", "old").version
    storage.put_insight("main", "new")
    reply = storage.append("main", "u", consume_insight_version=version)
    assert not reply.insight_consumed
    assert reply.insight_version == version + 1
    assert storage.insight("main").content == "new"


def test_an_insight_never_written_is_not_consumed(storage: Storage) -> None:
    storage.put("main")
    reply = storage.append("main", "u", consume_insight_version=0)
    assert (reply.insight_consumed, reply.insight_version) == (False, 0)


def test_groups_are_followed_from_append_to_append(storage: Storage) -> None:
    storage.put("main")
    for text in ("u", "a(x,y)", "t(y)", "t(x)", "a(z)", "u", "t(z)", "a(w)"):
        storage.append("main", text)
    context = storage.context("main")
    assert [record.seq for record in context.records] == [1, 2, 3, 4, 6]
    assert context.incomplete_records == 3
    child = storage.fork("main", "child")
    assert storage.seqs("child") == [1, 2, 3, 4, 6]
    assert (child.inherited_through_seq, child.incomplete_records) == (6, 3)


def test_a_state_of_open_groups_that_grew_too_long_is_read_from_history(storage: Storage) -> None:
    storage.put("main")
    ids = ["x" * 200 + str(number) for number in range(400)]
    for start in range(0, 400, 100):
        storage.append("main", " ".join(f"a({call_id})" for call_id in ids[start : start + 100]))
    storage.append("main", " ".join(f"t({call_id})" for call_id in ids[:399]))
    assert storage.context("main").incomplete_records == 1
    storage.append("main", "u")
    assert storage.fork("main", "child").incomplete_records == 1
    assert 400 not in storage.seqs("child")
    assert len(storage.seqs("child")) == 799
