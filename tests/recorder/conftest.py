"""Servers that take events, and ports where there are none."""

import socket
from collections.abc import Iterator

import pytest

from tests.recorder.taking import TakingServer


@pytest.fixture
def server() -> Iterator[TakingServer]:
    """A server that takes events."""
    with TakingServer() as taking:
        yield taking


@pytest.fixture
def nowhere() -> Iterator[str]:
    """An address at which nobody listens, and nobody will."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"
