"""Where benchmarks run: a database and servers, each a process of its own on this machine."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.cases import BOTH
from tests.harness.mariadb import MariaDb

BACKENDS = BOTH

_ROOT = Path(__file__).resolve().parent.parent
_TICKS = os.sysconf("SC_CLK_TCK")


class Server:
    """A server's process that tells where it listens."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path) -> None:
        """Starts it and waits until it tells its address; raises RuntimeError where it ends before."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("RAMET_")}
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                cwd=_ROOT,
                env={**clean, "PYTHONPATH": f"{_ROOT}{os.pathsep}{_ROOT / 'clients' / 'python'}", **environment},
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._log = log
        self.profiled = False
        """Whether it tells what its CPU time went into."""
        self.address = self._told_address()

    def _told_address(self) -> str:
        for line in self._process.stdout or ():
            if line.startswith("Listening on "):
                return line.split()[-1]
        self.stop()
        raise RuntimeError(f"{self._process.args!r} did not start:\n{self._log.read_text()}")

    @property
    def pids(self) -> list[int]:
        """The ids of its processes: its own, and those of its workers."""
        found, at = [self._process.pid], 0
        while at < len(found):
            found += _children(found[at])
            at += 1
        return found

    def measurement_begins(self) -> None:
        """Has a profile begin anew."""
        if self.profiled:
            self._process.send_signal(signal.SIGUSR1)

    def stop(self) -> None:
        """Ends the process."""
        self._process.terminate()
        self._process.wait(60)
        if self._process.stdout is not None:
            self._process.stdout.close()


def _children(pid: int) -> list[int]:
    text = "".join(task.read_text() for task in Path(f"/proc/{pid}/task").glob("*/children"))
    return [int(each) for each in text.split()]


def cpu_seconds(pids: list[int]) -> float:
    """Returns the CPU time that processes have used, in seconds."""
    return sum(_cpu_seconds(pid) for pid in pids)


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def resident_mb(pids: list[int]) -> float:
    """Returns how much memory processes hold."""
    return sum(_status_mb(pid, "VmRSS") for pid in pids)


def peak_mb(pids: list[int]) -> float:
    """Returns how much memory processes held at most since ``forget_peak``."""
    return sum(_status_mb(pid, "VmHWM") for pid in pids)


def forget_peak(pids: list[int]) -> None:
    """Lets the peak begin anew."""
    for pid in pids:
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def _status_mb(pid: int, name: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) / 1024


def thread_count(pids: list[int]) -> int:
    """Returns how many threads processes have."""
    return sum(len(os.listdir(f"/proc/{pid}/task")) for pid in pids)


class Stand:
    """A backend for the length of a part; ends all that it started."""

    def __init__(self, backend: str, *, seconds: float = 3.0, profile: Path | None = None) -> None:
        """Takes the backend's name, see BACKENDS, and how long one measurement takes.

        With ``profile`` each of Ramet's servers writes there, when it ends, what its CPU time went into.
        """
        self.backend = backend
        self.seconds = seconds
        self.directory = Path(tempfile.mkdtemp(prefix="ramet-bench-"))
        """For files that go with the stand."""
        # As durable as a server that is not in a test: each commit is on disk before it is answered.
        options = ("--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=1G")
        self._mariadb = MariaDb(*options) if backend == "mariadb" else None
        self._profile = profile
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
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def database_pids(self) -> list[int]:
        """The database's process, if it has one of its own."""
        return [] if self._mariadb is None else [self._mariadb.pid]

    def version(self) -> str:
        """Returns the name and version of the database server."""
        if self._mariadb is None:
            return f"SQLite {sqlite3.sqlite_version}"
        return f"MariaDB {self._mariadb.execute('SELECT VERSION() AS version')[0]['version']}"

    def statements(self) -> int:
        """Returns how many statements the database server has run so far; of MariaDB only."""
        if self._mariadb is None:
            raise RuntimeError("SQLite does not count statements.")
        return int(self._mariadb.execute("SHOW GLOBAL STATUS LIKE 'Com_select'")[0]["Value"])

    def new_database(self) -> str:
        """Makes an empty database and returns its URL."""
        if self._mariadb is not None:
            return self._mariadb.new_database()
        self._databases += 1
        return f"sqlite:///{self.directory / str(self._databases)}.db"

    def ramet(self, url: str, service: str = "all", *options: str) -> Server:
        """Starts Ramet over a database, with its own settings but for what ``options`` say."""
        program = [str(Path(sys.executable).with_name("ramet-server"))]
        if self._profile is not None:
            program = [sys.executable, "-m", "benchmarks.profiling", str(self._profile)]
        environment = {"RAMET_DATABASE_URL": url, "RAMET_LISTEN": "127.0.0.1:0", "RAMET_LAME_DUCK_SECONDS": "0"}
        server = self._start([*program, service, *options], environment)
        server.profiled = self._profile is not None
        return server

    def bare(self, name: str, *arguments: str) -> Server:
        """Starts one of ``benchmarks.bare``."""
        module = f"benchmarks.bare.{name}"
        return self._start([sys.executable, "-m", module, "--listen", "127.0.0.1:0", *arguments], {})

    def _start(self, command: list[str], environment: dict[str, str]) -> Server:
        server = Server(command, environment, self.directory / f"{len(self._servers)}.log")
        self._servers.append(server)
        return server
