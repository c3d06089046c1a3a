"""Servers of their own, for cases that stop, cut or fill them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import grpc
import pytest

from tests.harness.server import PROGRAM, ServerProcess

Start = Callable[..., ServerProcess]
Connect = Callable[[str], grpc.Channel]


@pytest.fixture
def start(database_url: str, tmp_path: Path) -> Iterator[Start]:
    """Starts programs `ramet-server` over the test's database, on each backend; all end with the test."""
    with ExitStack() as stack:
        started: list[ServerProcess] = []

        def start_one(command: str = "all", **settings: str) -> ServerProcess:
            folder = tmp_path / f"server{len(started)}"
            folder.mkdir()
            server = ServerProcess(folder, {"RAMET_DATABASE_URL": database_url, **settings}, [PROGRAM, command])
            started.append(server)
            return stack.enter_context(server)

        yield start_one


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Opens channels that share no connection with others; all close with the test."""
    with ExitStack() as stack:

        def open_one(address: str) -> grpc.Channel:
            # Without this, channels to one address share what the test wants to cut.
            options = [("grpc.use_local_subchannel_pool", 1), ("grpc.initial_reconnect_backoff_ms", 100)]
            return stack.enter_context(grpc.insecure_channel(address, options=options))

        yield open_one
