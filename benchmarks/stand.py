"""Where benchmarks run: a database and servers, each a process of its own on this machine."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.harness.mariadb import MariaDb

BACKENDS = ("mariadb", "sqlite")

_ROOT = Path(__file__).resolve().parent.parent
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Server:
    """A server's process that tells where it listens."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path) -> None:
        """Starts it and waits until it tells its address; raises RuntimeError where it ends before."""
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                cwd=_ROOT,
                env={**os.environ, "PYTHONPATH": f"{_ROOT}{os.pathsep}{_ROOT / 'clients' / 'python'}", **environment},
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        if self._process.stdout is None:
            raise RuntimeError("The server's output cannot be read.")
        for line in self._process.stdout:
            if line.startswith("Listening on "):
                self.address = line.split()[-1]
                return
        raise RuntimeError(f"{command} did not start:\n{log.read_text()}")

    @property
    def pid(self) -> int:
        """The id of its process."""
        return self._process.pid

    def stop(self) -> None:
        """Ends the process."""
        self._process.terminate()
        self._process.wait(30)


def cpu_seconds(pid: int) -> float:
    """Returns the CPU time that a process has used, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def resident_bytes(pid: int) -> int:
    """Returns how much memory a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE


def thread_count(pid: int) -> int:
    """Returns how many threads a process has."""
    return len(os.listdir(f"/proc/{pid}/task"))


class Stand:
    """A backend for the length of a run; ends all that it started."""

    def __init__(self, backend: str) -> None:
        """Takes the backend's name; see BACKENDS."""
        self.backend = backend
        self._directory = Path(tempfile.mkdtemp(prefix="ramet-bench-"))
        # As durable as a server that is not in a test: each commit is on disk before it is answered.
        self._mariadb = MariaDb("--innodb-flush-log-at-trx-commit=1") if backend == "mariadb" else None
        self._servers: list[Server] = []
        self._databases = 0

    def __enter__(self) -> Self:
        if self._mariadb is not None:
            self._mariadb.install()
            self._mariadb.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for server in self._servers:
            server.stop()
        if self._mariadb is not None:
            self._mariadb.remove()
        shutil.rmtree(self._directory, ignore_errors=True)

    @property
    def database_pid(self) -> int | None:
        """The database's process, if it has one of its own."""
        return None if self._mariadb is None else self._mariadb.pid

    def version(self) -> str:
        """Returns the name and version of the database server."""
        if self._mariadb is None:
            return f"SQLite {sqlite3.sqlite_version}"
        return f"MariaDB {self._mariadb.execute('SELECT VERSION() AS version')[0]['version']}"

    def new_database(self) -> str:
        """Makes an empty database and returns its URL."""
        if self._mariadb is not None:
            return self._mariadb.new_database()
        self._databases += 1
        return f"sqlite:///{self._directory / str(self._databases)}.db"

    def ramet(self, url: str, service: str = "all", **settings: str) -> Server:
        """Starts Ramet over a database; settings are its variables without RAMET_, in small letters."""
        environment = {f"RAMET_{name.upper()}": value for name, value in settings.items()}
        environment |= {"RAMET_DATABASE_URL": url, "RAMET_LISTEN": "127.0.0.1:0"}
        return self._start([str(Path(sys.executable).with_name("ramet-server")), service], environment)

    def bare(self, name: str, *arguments: str) -> Server:
        """Starts one of ``benchmarks.bare``."""
        module = f"benchmarks.bare.{name}"
        return self._start([sys.executable, "-m", module, "--listen", "127.0.0.1:0", *arguments], {})

    def _start(self, command: list[str], environment: dict[str, str]) -> Server:
        server = Server(command, environment, self._directory / f"{len(self._servers)}.log")
        self._servers.append(server)
        return server
