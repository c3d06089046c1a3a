"""Where the demo's services are: those that RAMET_ADDRESS names, or ones that it starts for itself."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Services:
    """Running services."""

    address: str
    database: Path | None
    """Their SQLite file, where it is the demo's own."""


@contextmanager
def services() -> Iterator[Services]:
    """Yields running services; ends what it started itself."""
    address = os.environ.get("RAMET_ADDRESS")
    if address:
        print(f"Services: {address} (RAMET_ADDRESS)")
        yield Services(address, None)
        return
    with tempfile.TemporaryDirectory(prefix="ramet-demo-") as folder:
        database = Path(folder) / "demo.db"
        process, address = _start(Path(folder), database)
        try:
            print(f"Services: {address}, started for this demo over a SQLite file that goes with it")
            yield Services(address, database)
        finally:
            process.terminate()
            process.communicate(timeout=60)


def _start(folder: Path, database: Path) -> tuple["subprocess.Popen[str]", str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("RAMET_")}
    settings = {
        "RAMET_DATABASE_URL": f"sqlite:///{database}",
        "RAMET_LISTEN": "127.0.0.1:0",
        "RAMET_LAME_DUCK_SECONDS": "0",
        "RAMET_LOG_LEVEL": "warning",
    }
    log = folder / "server.log"
    with log.open("w") as errors:
        process = subprocess.Popen(  # noqa: S603 - our own program
            [Path(sys.executable).parent / "ramet-server", "all"],
            env=own | settings,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    for line in process.stdout or ():
        if line.startswith("Listening on "):
            return process, line.removeprefix("Listening on ").strip()
    raise SystemExit(f"ramet-server ended with {process.wait()}:\n{log.read_text()}")
