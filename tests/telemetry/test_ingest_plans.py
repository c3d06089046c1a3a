"""How the database takes events in: by which index, beside however many rows."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet_server.database.database import Database
from ramet_server.domain.ids import new_id
from telemetry.rules.ingest import Batch, IngestRules
from telemetry.rules.row_ids import RowIds
from telemetry.store.unit import SqlStore
from tests.session_service.storage import statements
from tests.telemetry import events as e
from tests.telemetry.diagnosing import diagnose_all
from tests.telemetry.test_answer_plans import TABLES, faults, multiply
from tests.telemetry.world import TurnedClock, World


@pytest.fixture(scope="module")
def crowded(database: Database) -> World:
    """Thousands of diagnoses beside those of another space."""
    for space in ("other", "crowded"):
        world = World(database, f"{space}-{new_id()}", TurnedClock())
        diagnose_all(world, 50)
        multiply(world)
    tables = ", ".join((*TABLES, "telemetry_event", "telemetry_producer"))
    if database.engine.dialect.name == "mysql":
        database.read(world.call, lambda connection: connection.execute(text(f"ANALYZE TABLE {tables}")).all())
    return world


def _story(prefix: str, session_ids: list[str]) -> list[pb.Event]:
    return [
        event
        for each in session_ids
        for event in (
            e.tool(f"{prefix}-{each}-t", "tool", session_id=each, step_key="step"),
            e.step_started(f"{prefix}-{each}-s", "step", session_id=each),
            e.feedback(f"{prefix}-{each}-f", e.USEFUL, session_id=each),
        )
    ]


@pytest.mark.parametrize("count", [1, 30])
def test_no_batch_reads_a_whole_table(crowded: World, count: int) -> None:
    sessions = [f"new-{count}-{n}" for n in range(count)]
    with statements(crowded.database) as seen:
        # Tool calls first, so that steps find them waiting; then ends of what is there.
        for event in _story(f"a{count}", sessions):
            crowded.told(event)
        crowded.told(*_story(f"b{count}", sessions))
        crowded.told(*(e.step_completed(f"c{count}-{each}", "step", session_id=each) for each in sessions))
        crowded.say(e.USEFUL, session_id=sessions[0], request_id=f"r{count}")
        rules = IngestRules(SqlStore(crowded.database, crowded.clock, 24), crowded.limits, crowded.clock, RowIds())
        rules.open_stream(crowded.call, "p", "h")
        rules.advance(crowded.call, "p", "h", [Batch(1, [])])
        rules.open_stream(crowded.call, "p", "h2")
    found = {
        statement: faults(crowded.database, statement.replace(" FOR UPDATE", ""), parameters)
        for statement, parameters in seen
        if statement.startswith(("SELECT", "UPDATE"))
    }
    assert len(found) > 8
    assert not {statement: plan for statement, plan in found.items() if plan}
