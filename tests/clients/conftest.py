"""One real server for the clients of other languages: `ramet-server all` over a SQLite file, as its own process."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_PROGRAM = Path(sys.executable).parent / "ramet-server"


@pytest.fixture(scope="session")
def served_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yields the address of a server that runs as long as the tests do."""
    folder = tmp_path_factory.mktemp("served")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAMET_")}
    settings = {"RAMET_DATABASE_URL": f"sqlite:///{folder / 'ramet.db'}", "RAMET_LISTEN": "127.0.0.1:0"}
    with (
        (folder / "server.log").open("w") as log,
        subprocess.Popen(
            [_PROGRAM, "all"], env=environment | settings, stdout=subprocess.PIPE, stderr=log, text=True
        ) as server,
    ):
        try:
            yield _address(server, folder / "server.log")
        finally:
            server.terminate()
            server.communicate(timeout=60)
    assert server.returncode == 0, (folder / "server.log").read_text()


def _address(server: subprocess.Popen[str], log: Path) -> str:
    assert server.stdout is not None
    for line in server.stdout:
        if line.startswith("Listening on "):
            return line.removeprefix("Listening on ").strip()
    raise AssertionError(f"The server did not start:\n{log.read_text()}")
