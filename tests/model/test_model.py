"""The machine on each backend."""

from collections.abc import Iterator
from contextlib import closing

import grpc
import pytest
from hypothesis.stateful import run_state_machine_as_test

from ramet_server.database.database import Database
from ramet_server.domain.call import Call
from ramet_server.domain.clock import SystemClock
from ramet_server.domain.limits import Limits
from ramet_server.verifying import Verification
from tests.harness.server import running_server
from tests.model.base import Base, Surroundings
from tests.model.machine import SETTINGS, Both, Conversations, Trees
from tests.model.stored import row_counter


@pytest.fixture
def surroundings(database_url: str) -> Iterator[Surroundings]:
    """What a machine needs: a server over an empty database, and a look into that, on each backend."""
    with (
        running_server(database_url) as address,
        grpc.insecure_channel(address) as channel,
        closing(Database.open(database_url)) as database,
    ):
        verification = Verification(database, Limits(), SystemClock())
        yield Surroundings(
            channel,
            row_counter(database.engine),
            lambda space: list(verification.run(Call(""), space=space)),
        )


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", [Conversations, Trees, Both])
def test_the_services_do_as_the_model_does(surroundings: Surroundings, kind: type[Base]) -> None:
    class Machine(kind):  # type: ignore[valid-type,misc]  # one of three classes
        """The kind, in these surroundings."""

    Machine.surroundings = surroundings

    run_state_machine_as_test(Machine, settings=SETTINGS)

    assert Machine.finished >= SETTINGS.max_examples
