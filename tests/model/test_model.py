"""The machine on each backend."""

from collections.abc import Iterator

import grpc
import pytest
from hypothesis.stateful import run_state_machine_as_test

from tests.harness.server import running_server
from tests.model.base import Base
from tests.model.machine import SETTINGS, Both, Conversations, Trees


@pytest.fixture
def channel(database_url: str) -> Iterator[grpc.Channel]:
    """A channel to a server over an empty database, on each backend."""
    with running_server(database_url) as address, grpc.insecure_channel(address) as channel:
        yield channel


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", [Conversations, Trees, Both])
def test_the_services_do_as_the_model_does(channel: grpc.Channel, kind: type[Base]) -> None:
    machine = type(kind.__name__, (kind,), {"channel": channel})

    run_state_machine_as_test(machine, settings=SETTINGS)
