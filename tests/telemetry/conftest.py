"""A space of its own for each test, over each backend."""

from __future__ import annotations

import pytest

from ramet_server.database.database import Database
from ramet_server.domain.ids import new_id
from tests.telemetry.world import TurnedClock, World


@pytest.fixture
def clock() -> TurnedClock:
    """The clock of the service."""
    return TurnedClock()


@pytest.fixture
def world(database: Database, clock: TurnedClock) -> World:
    """A space of which nothing was told."""
    return World(database, f"space-{new_id()}", clock)
