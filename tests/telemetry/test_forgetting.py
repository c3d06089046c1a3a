"""What ingest remembers for a time only, and that forgetting it costs nothing."""

from __future__ import annotations

from datetime import timedelta

import telemetry
from ramet_server.database.tables import telemetry as tables
from ramet_server.domain.call import Call
from tests.telemetry import events as e
from tests.telemetry.world import World, refused


def test_an_event_that_comes_after_its_id_was_forgotten_changes_nothing(world: World) -> None:
    story = [e.started("e1", query="why"), *e.steps(4), e.tool("e2", "t", step_key="s1"), e.feedback("e3", e.USEFUL)]
    world.told(*story)
    before = world.everything()
    sweep = telemetry.build_sweep(world.database, world.limits, world.clock)
    sweep.forget_events(Call(""), 100_000)
    assert len(world.rows(tables.telemetry_event)) == len(story)
    world.clock.ahead = timedelta(hours=world.limits.request_id_hours, seconds=1)
    world.told(e.step_completed("fresh", "fresh", session_id="other"))
    while sweep.forget_events(Call(""), 3):
        pass
    assert [row["event_id"] for row in world.rows(tables.telemetry_event)] == ["fresh"]
    world.told(*reversed(story))
    found = world.everything()
    for name in ("steps", "tools", "words"):
        assert [row for row in found[name] if row["session_id"] == "d"] == before[name]
    assert [row for row in found["diagnoses"] if row["session_id"] == "d"] == before["diagnoses"]


def test_a_conflict_is_told_for_as_long_as_the_id_is_remembered(world: World) -> None:
    world.told(e.step_completed("e1", "a", thought="first"))
    world.clock.ahead = timedelta(hours=world.limits.request_id_hours - 1)
    reply = world.tell(e.step_completed("e1", "a", thought="second"))
    assert refused(reply) == [("e1", "EVENT_CONFLICT", "event_id")]
