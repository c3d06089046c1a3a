"""Sessions of its own for each test, over each backend."""

import pytest

from ramet_server.database.database import Database
from ramet_server.domain.ids import new_id
from ramet_server.domain.limits import Limits
from tests.session_service.storage import Storage, TurnedClock


@pytest.fixture
def clock() -> TurnedClock:
    """The clock of the service."""
    return TurnedClock()


@pytest.fixture
def storage(database: Database, clock: TurnedClock) -> Storage:
    """A space without sessions."""
    return Storage(database, f"space-{new_id()}", Limits(), clock)
