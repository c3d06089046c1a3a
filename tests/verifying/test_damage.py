"""Every kind of damage is told, and mended where that is safe; nothing else changes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ramet_server.domain.findings import Outcome
from tests.verifying import damages
from tests.verifying.damages import DAMAGES, Damage
from tests.verifying.world import World


def test_what_the_services_leave_is_whole(world: World) -> None:
    assert world.verify() == []


@pytest.mark.parametrize("planted", DAMAGES, ids=[each.plant.__name__ for each in DAMAGES])
def test_damage_is_told_and_mended(world: World, planted: Damage) -> None:
    whole = world.dump()
    about = planted.plant(world)
    damaged = world.dump()
    told = world.verify()
    assert (planted.code, planted.space, about) in {(each.code, each.space, each.id) for each in told}
    assert {each.code for each in told} - {planted.code} == set(planted.along) - {planted.code}
    assert len(told) == 1 or planted.along
    assert {each.outcome for each in told} == {Outcome.TOLD}
    assert world.dump() == damaged

    mended = world.verify(repair=True)
    if planted.left:
        (left,) = [each for each in mended if each.code == planted.code]
        assert left.outcome is Outcome.LEFT
        assert left.reason
        assert planted.code in {each.code for each in world.verify()}
        return
    assert {each.outcome for each in mended} == {Outcome.MENDED}
    assert world.verify() == []
    now = world.dump()
    for name, rows in whole.items():
        if name not in planted.may_differ:
            assert now[name] == rows, name


def test_one_space_alone_can_be_looked_at(world: World) -> None:
    damages.a_wrong_total(world)
    damages.a_record_of_a_deleted_source_that_is_gone(world)
    assert world.verify(space="other") == []
    assert {each.code for each in world.verify(space="space")} == {"DIAGNOSIS_TOTALS", "RECORD_MISSING"}


def test_what_is_left_to_people_can_be_done_as_it_says(world: World) -> None:
    damages.a_node_whose_parent_is_gone(world)
    damages.a_record_that_is_gone(world)
    world.verify(repair=True)
    world.space.forest.move("leaf", "side")
    world.space.storage.truncate("main", 10)
    assert world.verify() == []
    assert world.space.forest.ancestors("leaf") == ["side", "main"]


def test_many_spans_are_looked_at_in_parts(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("session_service.store.audit._SPANS_AT_ONCE", 2)
    assert world.verify() == []
    about = damages.a_floor_above_what_is_shown(world)
    damages.a_record_that_is_gone(world)
    assert [(each.code, each.id) for each in world.verify() if each.code == "SESSION_FLOOR"] == [
        ("SESSION_FLOOR", about)
    ]
    assert len(world.verify()) == 2


def test_every_code_that_is_documented_is_tried() -> None:
    page = (Path(__file__).parents[2] / "docs" / "verify.md").read_text(encoding="utf-8")
    table = page.partition("| Code |")[2]
    documented = {code for line in table.splitlines() for code in re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", line[:80])}
    assert documented - {"RAMET_AWAIT_CONTENT_SECONDS"} == {planted.code for planted in DAMAGES}
