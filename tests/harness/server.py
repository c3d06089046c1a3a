"""Real servers for tests: in this process on a thread of its own, or as the program ``ramet-server``."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from ramet_server.commands.serve import make_server
from ramet_server.commands.services import ALL, ServedService
from ramet_server.database.database import Database
from ramet_server.serving.listen import Background
from ramet_server.serving.settings import Settings

PROGRAM = Path(sys.executable).parent / "ramet-server"

_START_TIMEOUT_S = 60.0


@contextmanager
def running_server(
    url: str,
    services: Sequence[ServedService] = ALL,
    *,
    settings: Settings | None = None,
    background: Sequence[Background] = (),
) -> Iterator[str]:
    """Runs a server over a database in this process, on a free port; yields its address once it is ready.

    ``settings`` may be given for all but address and database. Every call is cut when the block ends.
    """
    chosen = settings or Settings(log_level="warning")
    values = {**chosen.__dict__, "listen": "127.0.0.1:0", "database_url": url, "lame_duck_seconds": 0.0}
    database = Database.open(url, chosen.pool_size)
    runner = _Runner(Settings(**values), services, database, background)
    try:
        runner.start()
        yield runner.address
    finally:
        runner.stop()
        database.close()


class _Runner:
    """A server with an event loop and a thread of its own, so that blocking tests can use it."""

    def __init__(
        self,
        settings: Settings,
        services: Sequence[ServedService],
        database: Database,
        background: Sequence[Background],
    ) -> None:
        self.address = ""
        self._arguments = (settings, services, database, background)
        self._ready = threading.Event()
        self._error: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="server-under-test", daemon=True)

    def start(self) -> None:
        self._thread.start()
        if not self._ready.wait(_START_TIMEOUT_S):
            raise TimeoutError("The server did not become ready.")
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_START_TIMEOUT_S)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - raised again by start, in the thread of the test
            self._error = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = make_server(*self._arguments)
        try:
            await server.start()
            await server.wait_until_ready()
            self.address = server.address
            self._ready.set()
            await server.serve(self._stop)
        finally:
            await server.stop_now()


class ServerProcess:
    """The program ``ramet-server`` as a process of its own; its address is known within the block."""

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str],
        command: Sequence[str | Path] = (PROGRAM, "all"),
    ) -> None:
        """Takes a folder for the log, settings as ``RAMET_*`` variables, and what to run.

        The port is a free one and there is no lame duck, unless the settings say otherwise.
        """
        self.log = folder / "server.log"
        self.address = ""
        self.output = ""
        """What the program wrote to standard output so far as it was waited for."""
        self._command = command
        clean = {name: value for name, value in os.environ.items() if not name.startswith("RAMET_")}
        free = {"RAMET_LISTEN": "127.0.0.1:0", "RAMET_LAME_DUCK_SECONDS": "0"}
        self._environment = clean | free | dict(settings)
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()

    @property
    def process(self) -> "subprocess.Popen[str]":
        """The process, once started."""
        if self._process is None:
            raise RuntimeError("The server was not started.")
        return self._process

    def start(self) -> None:
        """Starts the program and waits until it listens; raises RuntimeError with its log where it ends instead."""
        self.address = ""
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                list(self._command), env=self._environment, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.output += line
            if line.startswith("Listening on "):
                self.address = line.removeprefix("Listening on ").strip()
            elif line.startswith("{"):
                self.address = json.loads(line)["address"]
            if self.address:
                return
        code = self.wait()
        raise RuntimeError(f"The server ended with {code}:\n{self.log.read_text()}")

    def terminate(self, timeout_s: float = 60.0) -> int:
        """Asks the program to drain, waits for its end and returns its exit code."""
        self.process.terminate()
        return self.wait(timeout_s)

    def wait(self, timeout_s: float = 60.0) -> int:
        """Waits for the program's end and returns its exit code."""
        code = self.process.wait(timeout_s)
        stdout = self.process.stdout
        # Not by communicate: it passes over what was read ahead of the line that told the address.
        if stdout is not None and not stdout.closed:
            self.output += stdout.read()
            stdout.close()
        return code

    def kill(self) -> None:
        """Ends the program at once, as a crash does; nothing where it has ended."""
        if self._process is not None and self._process.stdout and not self._process.stdout.closed:
            self._process.kill()
            self._process.communicate()
