"""A MariaDB server of the tests' own: its data directory, its port, and databases by the dozen."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import uuid
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pymysql
import pymysql.cursors

_START_TIMEOUT_S = 60.0
_STEP_S = 0.05


def missing() -> str | None:
    """Returns why no server can be started here; None where one can."""
    for name in ("mariadbd", "mariadb-install-db"):
        if _find(name) is None:
            return f"{name} is not installed"
    return None


class MariaDb:
    """A server that runs from ``start`` to ``stop``, on 127.0.0.1 and a socket in its own directory."""

    def __init__(self, *options: str) -> None:
        """Chooses the place and port; ``options`` are more arguments of the server."""
        self.directory = Path(tempfile.mkdtemp(prefix="ramet-mariadb-"))
        self.port = _free_port()
        self.socket = self.directory / "server.sock"
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.install()
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.remove()

    def install(self) -> None:
        """Makes the data directory."""
        arguments = [f"--datadir={self.directory / 'data'}", "--auth-root-authentication-method=normal"]
        done = subprocess.run(
            [_path("mariadb-install-db"), "--no-defaults", *arguments, "--skip-test-db", *_as_user()],
            capture_output=True,
            text=True,
            check=False,
            # As in start: whatever server starts meanwhile would delete its temporary tables.
            env={**os.environ, "TMPDIR": str(self.directory)},
        )
        if done.returncode != 0:
            raise RuntimeError(f"mariadb-install-db failed:\n{done.stdout}\n{done.stderr}")

    def start(self) -> None:
        """Starts the server and waits until it answers."""
        with (self.directory / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *_ending_with_parent(),
                    _path("mariadbd"),
                    "--no-defaults",
                    *_as_user(),
                    f"--datadir={self.directory / 'data'}",
                    # A server that starts deletes the temporary tables of all servers that share this place.
                    f"--tmpdir={self.directory}",
                    f"--socket={self.socket}",
                    f"--port={self.port}",
                    f"--pid-file={self.directory / 'server.pid'}",
                    "--bind-address=127.0.0.1",
                    "--skip-log-bin",
                    "--skip-name-resolve",
                    "--innodb-buffer-pool-size=128M",
                    # A power cut is not tested here, and a flush for each commit makes tests slow.
                    "--innodb-flush-log-at-trx-commit=2",
                    "--max-connections=400",
                    *self._options,
                ],
                stdout=log,
                stderr=log,
            )
        waited = 0.0
        while True:
            if self._listens():
                return
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_STEP_S)
                raise RuntimeError(f"mariadbd ended:\n{(self.directory / 'server.log').read_text()}")
            waited += _STEP_S
            if waited > _START_TIMEOUT_S:
                raise RuntimeError("mariadbd does not answer")

    def _listens(self) -> bool:
        # Not with the driver: it leaks the socket of an attempt that fails.
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.socket)) == 0

    def stop(self, *, kill: bool = False) -> None:
        """Ends the server, with ``kill`` as a crash does."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        self._process.wait(60)
        self._process = None

    @property
    def pid(self) -> int:
        """The id of the running server's process."""
        if self._process is None:
            raise RuntimeError("The server does not run.")
        return self._process.pid

    def remove(self) -> None:
        """Ends the server and removes all it stored."""
        self.stop(kill=True)
        shutil.rmtree(self.directory, ignore_errors=True)

    def execute(self, statement: str, database: str | None = None) -> list[dict[str, Any]]:
        """Runs one statement as root and returns its rows."""
        connection = pymysql.connect(
            unix_socket=str(self.socket), user="root", database=database, autocommit=True, connect_timeout=5
        )
        with connection, connection.cursor(pymysql.cursors.DictCursor) as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def new_database(self, charset: str = "utf8mb4") -> str:
        """Makes an empty database and returns its URL."""
        name = f"ramet_{uuid.uuid4().hex[:12]}"
        self.execute(f"CREATE DATABASE {name} CHARACTER SET {charset}")
        return f"mysql://root@127.0.0.1:{self.port}/{name}"

    def drop_database(self, url: str) -> None:
        """Drops a database that ``new_database`` made."""
        self.execute(f"DROP DATABASE IF EXISTS {url.rpartition('/')[2]}")


def _find(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")


def _path(name: str) -> str:
    path = _find(name)
    if path is None:
        raise RuntimeError(f"{name} is not installed")
    return path


def _as_user() -> list[str]:
    """Returns the option that makes the server run as the user who runs the tests, even if that is root."""
    done = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True)
    return [f"--user={done.stdout.strip()}"]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _ending_with_parent() -> list[str]:
    """Returns what, before a command, has the kernel end it when the tests end, even if they are killed.

    A preexec_fn could do it too, but it makes a real fork, in which gRPC's own handlers crash now and then.
    """
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM"] if setpriv else []
