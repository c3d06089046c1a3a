"""A forest of its own for each test, over each backend."""

from collections.abc import Iterator

import pytest

from ramet_server.database.database import Database
from ramet_server.domain.call import Call
from ramet_server.domain.ids import new_id
from ramet_server.domain.limits import Limits
from tests.tree_service.checking import check_whole
from tests.tree_service.forest import Forest, TurnedClock


@pytest.fixture
def clock() -> TurnedClock:
    """The clock of the forest."""
    return TurnedClock()


@pytest.fixture
def forest(database: Database, clock: TurnedClock) -> Iterator[Forest]:
    """An empty forest; whatever a test does to it, it must be whole afterwards."""
    made = Forest(database, Call(f"space-{new_id()}"), Limits(), clock)
    yield made
    check_whole(made)
