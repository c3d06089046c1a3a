"""What is dropped is erased: at once, in parts, by the sweep, and among sessions that drop at the same time."""

import pytest

from ramet.session.v1 import session_pb2 as pb
from ramet_server.domain.call import Call
from ramet_server.domain.errors import BelowTrimFloor, RecordNotFound, SessionArchived, SessionNotFound
from session_service.rules import erasure
from session_service.rules.erasure import ErasureRules
from tests.session_service.storage import Storage, at_once


@pytest.fixture
def without_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server dies between each commit and the sweep that should follow it."""
    monkeypatch.setattr(ErasureRules, "sweep_released", lambda *_: None)


def sweep(storage: Storage) -> int:
    """Runs the background sweep until nothing is left of any test."""
    return storage.sweep.erase_released(Call("of-no-meaning"), 1_000_000)


def test_deleting_a_session_leaves_no_row(storage: Storage) -> None:
    storage.put("main", "u a(x) u t(x) a(y)", tags=["red", "blue"], metadata_json="{}", system_prompt="be brief")
    storage.put_insight("main", "look")
    origin = storage.origin("main")
    storage.delete("main")
    tables = ("session", "session_tag", "context_slot", "record", "history_span", "broken_group", "released_span")
    assert {table: storage.rows(table, origin) for table in tables} == dict.fromkeys(tables, 0)


def test_a_fork_keeps_what_it_shows_and_nothing_else(storage: Storage) -> None:
    storage.put("main", "u1 u2 a(x) u3 u4")
    origin = storage.origin("main")
    storage.fork("main", "child")
    storage.append("main", "u5")
    storage.delete("main")
    assert storage.said("child") == "u1 u2 u3 u4"
    assert storage.rows("record", origin) == 4
    storage.trim("child", 1)
    assert storage.rows("record", origin) == 1
    storage.delete("child")
    assert storage.rows("record", origin) == 0


def test_rewinds_and_trims_erase_what_no_fork_shows(storage: Storage) -> None:
    storage.put("main", "u1 u2 u3 u4 u5 u6")
    origin = storage.origin("main")
    storage.fork("main", "child", up_to_seq=4)
    storage.truncate("main", 2)
    assert storage.rows("record", origin) == 4
    storage.append("main", "u7")
    assert storage.seqs("main") == [1, 2, 8]
    storage.trim("main", 1)
    assert storage.rows("record", origin) == 5
    storage.delete("child")
    assert storage.rows("record", origin) == 1


@pytest.mark.usefixtures("without_sweep")
def test_what_a_crash_left_is_swept_later(storage: Storage) -> None:
    storage.put("main", "u1 u2 u3")
    origin = storage.origin("main")
    storage.trim("main", 1)
    storage.delete("main")
    assert storage.rows("record", origin) == 3
    assert storage.rows("released_span", origin) == 2
    assert sweep(storage) >= 3
    assert storage.rows("record", origin) == 0
    assert storage.rows("released_span", origin) == 0
    assert sweep(storage) == 0


@pytest.mark.usefixtures("without_sweep")
def test_a_sweep_stops_at_its_limit_and_goes_on(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasure, "_BATCH", 4)
    sweep(storage)
    storage.put("main", "u " * 30)
    origin = storage.origin("main")
    storage.fork("main", "child", last=5)
    storage.delete("main")
    assert storage.sweep.erase_released(Call("of-no-meaning"), 10) == 12
    assert storage.rows("record", origin) == 18
    sweep(storage)
    assert storage.rows("record", origin) == 5
    assert len(storage.seqs("child")) == 5


def test_a_large_delete_leaves_the_rest_to_the_sweep(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasure, "_BATCH", 10)
    monkeypatch.setattr(erasure, "_IN_CALL", 30)
    storage.put("main", "u " * 100)
    origin = storage.origin("main")
    storage.delete("main")
    assert storage.rows("record", origin) == 70
    sweep(storage)
    assert storage.rows("record", origin) == 0


def test_forks_that_drop_the_same_records_at_once_leave_none(storage: Storage) -> None:
    storage.put("main", "u " * 20)
    origin = storage.origin("main")
    for number in range(8):
        storage.fork("main", f"child-{number}")
    storage.delete("main")
    assert storage.rows("record", origin) == 20
    at_once(8, lambda number: storage.delete(f"child-{number}"))
    sweep(storage)
    assert storage.rows("record", origin) == 0
    assert storage.rows("released_span", origin) == 0


def test_forks_made_while_the_source_is_trimmed_are_whole(storage: Storage) -> None:
    storage.put("main", "u " * 40)

    def work(number: int) -> str | None:
        if number % 2:
            storage.trim("main", 40 - 2 * number)
            return None
        storage.fork("main", f"child-{number}")
        return f"child-{number}"

    for child in filter(None, at_once(12, work)):
        seqs = storage.seqs(child)
        assert seqs == list(range(seqs[0], 41))
        assert storage.get(child).floor_seq == seqs[0] - 1


def test_forks_made_while_the_source_is_deleted_are_whole_or_refused(storage: Storage) -> None:
    storage.put("main", "u " * 30)
    origin = storage.origin("main")

    def work(number: int) -> str | None:
        if number == 4:
            storage.delete("main")
            return None
        try:
            return storage.fork("main", f"child-{number}").session.id
        except SessionNotFound:
            return None

    children = [child for child in at_once(8, work) if child]
    for child in children:
        assert len(storage.seqs(child)) == 30
        storage.delete(child)
    sweep(storage)
    assert storage.rows("record", origin) == 0


def test_an_erased_record_is_empty_in_every_session_and_stays_whole_as_a_group(storage: Storage) -> None:
    storage.put("main")
    made = pb.Record(
        role=pb.ROLE_ASSISTANT,
        content="secret",
        parts_json='["secret"]',
        metadata_json='{"secret": 1}',
        name="bot",
        tool_calls=[pb.ToolCall(id="x", name="search", arguments_json='{"secret": 1}')],
    )
    storage.append_all("main", [made])
    storage.append("main", "t(x)")
    storage.fork("main", "child")
    erased = storage.erase("child", 1)
    assert (erased.content, erased.parts_json, erased.metadata_json) == ("", "", "")
    assert [(call.id, call.name, call.arguments_json) for call in erased.tool_calls] == [("x", "search", "")]
    assert (erased.name, erased.role, erased.seq) == ("bot", pb.ROLE_ASSISTANT, 1)
    assert storage.listed("main")[0] == erased
    assert storage.erase("main", 1) == erased
    assert storage.context("main").incomplete_records == 0


def test_erasing_what_is_not_shown_is_refused(storage: Storage) -> None:
    storage.put("main", "u u u")
    storage.trim("main", 2)
    with pytest.raises(BelowTrimFloor) as refused:
        storage.erase("main", 1)
    assert refused.value.details == {"floor_seq": "1"}
    with pytest.raises(RecordNotFound):
        storage.erase("main", 4)
    head = storage.truncate("main", 3)
    storage.append("main", "u")
    with pytest.raises(RecordNotFound):
        storage.erase("main", head)
    storage.archive("main")
    with pytest.raises(SessionArchived):
        storage.erase("main", 2)


def test_a_session_is_deleted_for_the_tree_only_in_its_own_incarnation(storage: Storage) -> None:
    storage.put("main", "u")
    first = storage.origin("main")
    storage.delete("main")
    storage.put("main", "u u")
    assert not storage.sweep.delete_incarnation(storage.call, "main", first)
    assert storage.seqs("main") == [1, 2]
    second = storage.origin("main")
    assert storage.sweep.delete_incarnation(storage.call, "main", second)
    assert not storage.sweep.delete_incarnation(storage.call, "main", second)
    assert storage.rows("record", first, second) == 0
