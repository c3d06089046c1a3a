"""One real server for the clients of other languages: `ramet-server all` over a SQLite file, as its own process."""

from collections.abc import Iterator

import pytest

from tests.harness.server import ServerProcess


@pytest.fixture(scope="session")
def served_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yields the address of a server that runs as long as the tests do."""
    folder = tmp_path_factory.mktemp("served")
    with ServerProcess(folder, {"RAMET_DATABASE_URL": f"sqlite:///{folder / 'ramet.db'}"}) as server:
        yield server.address
        assert server.terminate() == 0, server.log.read_text()
