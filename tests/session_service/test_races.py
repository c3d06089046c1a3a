"""Calls that meet: creating, updating, rewinding and appending at the same time."""

from contextlib import suppress

import pytest

from ramet.session.v1 import session_pb2 as pb
from ramet_server.domain.errors import BelowTrimFloor, SessionExists, StaleHead, StaleVersion
from tests.session_service.storage import Storage, at_once


def test_parallel_creates_of_one_id_make_it_once(storage: Storage) -> None:
    def create(number: int) -> str:
        try:
            storage.put("main", label=f"label-{number}", expected_version=0)
        except SessionExists:
            return "exists"
        return "created"

    assert sorted(at_once(8, create)) == ["created"] + ["exists"] * 7
    assert storage.get("main").version == 1


def test_parallel_puts_of_one_id_all_hold(storage: Storage) -> None:
    sessions = at_once(8, lambda number: storage.put("main", label=f"label-{number}", tags=[f"tag-{number}"]))
    assert sorted(session.version for session in sessions) == list(range(1, 9))
    last = max(sessions, key=lambda session: session.version)
    assert storage.get("main") == last


def test_parallel_updates_with_one_version_hold_once(storage: Storage) -> None:
    storage.put("main")

    def update(number: int) -> str:
        try:
            storage.put("main", label=f"label-{number}", expected_version=1)
        except StaleVersion as stale:
            return stale.details["current"]
        return "won"

    assert sorted(at_once(8, update)) == ["2"] * 7 + ["won"]


def test_parallel_forks_under_one_id_make_it_once(storage: Storage) -> None:
    storage.put("main", "u a")

    def fork(_: int) -> str:
        try:
            storage.fork("main", "child", opening_prompt="hello")
        except SessionExists:
            return "exists"
        return "forked"

    assert sorted(at_once(8, fork)) == ["exists"] * 7 + ["forked"]
    assert storage.said("child") == "u a hello"


def test_parallel_forks_of_one_source_are_all_whole(storage: Storage) -> None:
    storage.put("main", "u a(x) t(x) a(y)", system_prompt="be brief")
    children = at_once(12, lambda number: storage.fork("main", f"child-{number}").session.id)
    for child in children:
        assert storage.seqs(child) == [1, 2, 3]
        assert storage.context(child).system_prompt.content == "be brief"


def test_a_writer_who_saw_what_was_rewound_meets_another_head(storage: Storage) -> None:
    storage.put("main", "u a u")

    def work(number: int) -> str:
        try:
            if number % 2:
                storage.append("main", "u", expected_head_seq=3)
            else:
                storage.truncate("main", 1, expected_head_seq=3)
        except StaleHead:
            return "stale"
        return "won"

    assert sorted(at_once(6, work)) == ["stale"] * 5 + ["won"]


def test_appends_rewinds_and_trims_at_once_keep_seqs_ascending(storage: Storage) -> None:
    storage.put("main", "u u u u")

    def work(number: int) -> list[int]:
        if number % 4 == 1:
            storage.trim("main", 3)
        elif number % 4 == 2:
            # A trim may overtake it.
            with suppress(BelowTrimFloor):
                storage.truncate("main", storage.get("main").head_seq - 1)
        else:
            return list(storage.append("main", "u u").seqs)
        return []

    given = [seq for seqs in at_once(16, work) for seq in seqs]
    assert len(given) == len(set(given))
    seqs = storage.seqs("main")
    assert seqs == sorted(set(seqs))
    session = storage.get("main")
    assert all(session.floor_seq < seq <= session.head_seq for seq in seqs)
    origin = storage.origin("main")
    assert storage.rows("record", origin) == len(seqs)


def test_parallel_writes_of_a_slot_count_each(storage: Storage) -> None:
    storage.put("main")
    slots = at_once(8, lambda number: storage.put_insight("main", f"text-{number}"))
    assert sorted(slot.version for slot in slots) == list(range(1, 9))
    assert storage.insight("main") == max(slots, key=lambda slot: slot.version)


def test_parallel_twins_of_each_mutation_take_effect_once(storage: Storage) -> None:
    storage.put("main", "u a u a u a")
    storage.put("gone", "u")
    made = at_once(4, lambda _: storage.put("", label="made", request_id="put"))
    assert len({session.id for session in made}) == 1
    assert {session.version for session in made} == {1}
    assert {reply.floor_seq for reply in at_once(4, lambda _: storage.trim("main", 4, request_id="trim"))} == {2}
    assert set(at_once(4, lambda _: storage.truncate("main", 5, request_id="truncate"))) == {7}
    erased = at_once(4, lambda _: storage.erase("main", 3, request_id="erase"))
    assert len({record.erased_at.ToJsonString() for record in erased}) == 1
    forks = at_once(4, lambda _: storage.fork("main", request_id="fork"))
    assert len({fork.session.id for fork in forks}) == 1
    at_once(4, lambda _: storage.delete("gone", request_id="delete"))
    slots = at_once(4, lambda _: storage.put_insight("main", "text", request_id="slot"))
    assert {slot.version for slot in slots} == {1}
    assert len({slot.updated_at.ToJsonString() for slot in slots}) == 1
    assert {session.version for session in at_once(4, lambda _: storage.archive("main", request_id="archive"))} == {2}
    assert len(storage.service.ListSessions(pb.ListSessionsRequest(), storage.call).sessions) == 3


def test_a_repeated_slot_write_answers_with_its_own_version_and_content(storage: Storage) -> None:
    storage.put("main")
    first = storage.put_insight("main", "first", request_id="first")
    storage.put_insight("main", "second")
    assert storage.put_insight("main", "first", request_id="first") == first
    assert storage.insight("main").content == "second"


@pytest.mark.parametrize("keep", [0, 1])
def test_a_trim_beside_a_read_never_shows_a_hole(storage: Storage, keep: int) -> None:
    storage.put("main", "u " * 60)

    def work(number: int) -> list[int]:
        if number == 3:
            storage.trim("main", keep)
            return []
        return storage.seqs("main", page_size=1000)

    for seqs in at_once(7, work):
        assert seqs in ([], list(range(1, 61)), [60])
