"""An event at which the server itself fails is refused, and stops neither its neighbours nor its stream."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import pytest

from ramet_server.domain.errors import Internal
from telemetry.convert.events import candidates
from telemetry.rules.event_checks import EventChecks
from telemetry.rules.ingest import Batch, IngestRules
from telemetry.rules.row_ids import RowIds
from telemetry.store.ledger import SqlLedger
from telemetry.store.unit import SqlStore
from tests.telemetry import events as e
from tests.telemetry.world import World, refused


@pytest.fixture
def _poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the store fail, at the very end of its work, at events whose ids begin with "bad"."""
    add = SqlLedger.add

    def fail(self: SqlLedger, hashes: Mapping[str, str], now: datetime) -> None:
        if any(event_id.startswith("bad") for event_id in hashes):
            raise Internal("The server met a fault.")
        add(self, hashes, now)

    monkeypatch.setattr(SqlLedger, "add", fail)


@pytest.mark.usefixtures("_poisoned")
def test_an_event_at_which_the_server_fails_is_refused_alone(world: World) -> None:
    reply = world.tell(e.step_completed("e1", "a"), e.step_completed("bad", "b"), e.step_completed("e2", "c"))
    assert (reply.accepted, refused(reply)) == (2, [("bad", "INTERNAL", "")])
    assert {row["step_key"] for row in world.steps()} == {"a", "c"}
    assert world.diagnosis()["step_count"] == 2


@pytest.mark.usefixtures("_poisoned")
def test_a_fault_at_every_event_is_no_fault_of_theirs(world: World) -> None:
    for batch in ([e.step_completed("bad1", "a")], [e.step_completed("bad1", "a"), e.step_completed("bad2", "b")]):
        with pytest.raises(Internal):
            world.tell(*batch)
    assert world.steps() == []


@pytest.mark.usefixtures("_poisoned")
def test_a_stream_goes_on_behind_such_an_event(world: World) -> None:
    rules = IngestRules(SqlStore(world.database, world.clock, 24), world.limits, world.clock, RowIds())
    told = candidates(
        [e.step_completed("e1", "a"), e.step_completed("bad", "b"), e.step_completed("e2", "c")],
        EventChecks(world.limits),
    )
    rules.open_stream(world.call, "p", "h")
    taken = rules.advance(world.call, "p", "h", [Batch(1, told[:2]), Batch(3, told[2:])])
    assert taken.committed_through_seq == 3
    assert [(refusal.seq, refusal.event_id) for refusal in taken.refusals] == [(2, "bad")]
    assert {row["step_key"] for row in world.steps()} == {"a", "c"}
