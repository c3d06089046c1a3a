"""Several processes that serve one address, and the parent that starts them, watches them and ends them.

The parent loads no service and opens no database. A worker is a fresh process, so that nothing of one is
shared with another: no connection, no thread, no state of a random generator.
"""

import asyncio
import contextlib
import json
import logging
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

from ramet_server.serving.logs import fields
from ramet_server.serving.settings import Settings
from ramet_server.serving.stop_signals import stop_signals

NOW = b"now"
"""The line that tells a worker to end at once."""

_LONGEST_PAUSE_S = 30.0
_SOUND_S = 60.0
"""A worker that lived so long is replaced as if it were the first that died."""

_FAILED_STARTS = 3
"""After so many of one worker in a row, while no worker serves, the whole ends: whoever runs it must know."""

_LATE_S = 20.0
"""What a drain may take beyond its lame duck and its grace."""

_CUT_S = 5.0
"""What a worker gets to end at once."""

_WELL = "exit 0"

_log = logging.getLogger(__name__)


class ReplicasFailed(Exception):
    """The workers cannot serve, or did not end well; the text is one line for the operator."""


def told_listening(announcement: str) -> str:
    """Returns the line by which a worker tells that it takes calls."""
    return json.dumps({"listening": announcement})


def told_refusal(text: str) -> str:
    """Returns the line by which a worker tells why it cannot serve."""
    return json.dumps({"refused": text})


class Replicas:
    """The workers of one address, used from one event loop."""

    def __init__(
        self, command: Callable[[int], Sequence[str]], settings: Settings, address: str, *, pause_s: float = 0.5
    ) -> None:
        """Takes what runs the worker of a number, from 1 on, and the address that is held for them all.

        ``pause_s`` is the time before a worker that died is replaced; it doubles where that one dies soon, too.
        """
        self._command = command
        self._settings = settings
        self._first_line = json.dumps(asdict(replace(settings, listen=address))).encode() + b"\n"
        self._workers = {number: _Worker() for number in range(1, settings.workers + 1)}
        self._pause_s = pause_s
        self._all_serve = asyncio.Event()
        self._stopping = asyncio.Event()
        self._cut = False
        self._ended_badly: list[str] = []

    async def run(self, announce: Callable[[str], None]) -> None:
        """Serves until SIGTERM or SIGINT, then drains all workers; a second signal ends them at once.

        ``announce`` gets the text that tells where they serve, once all of them take calls. Raises
        ReplicasFailed where one cannot begin, where none is left, and where one ended badly in the drain.
        """
        stop, stop_now = stop_signals()
        keepers = [asyncio.create_task(self._keep(number), name=f"worker {number}") for number in self._workers]
        try:
            await _first_of(keepers, self._all_serve, stop)
            if self._all_serve.is_set():
                announce(self._workers[1].announcement)
            await _first_of(keepers, stop)
            await self._drain(keepers, stop_now)
        finally:
            await self._end(keepers)
        for keeper in keepers:
            keeper.result()
        if self._ended_badly:
            raise ReplicasFailed(" ".join(self._ended_badly))

    async def _drain(self, keepers: "Sequence[asyncio.Task[None]]", stop_now: asyncio.Event) -> None:
        _log.info("Draining all workers")
        self._stopping.set()
        for worker in self._workers.values():
            worker.drain()
        longest = self._settings.lame_duck_seconds + self._settings.grace_seconds + _LATE_S
        waits = [asyncio.create_task(each) for each in (asyncio.wait(keepers), stop_now.wait())]
        done, rest = await asyncio.wait(waits, timeout=longest, return_when=asyncio.FIRST_COMPLETED)
        for wait in rest:
            wait.cancel()
        if not done:
            self._ended_badly.append("Not every worker had drained in time; the rest was cut.")

    async def _end(self, keepers: "Sequence[asyncio.Task[None]]") -> None:
        """Ends what still runs, and returns once nothing does."""
        self._cut = True
        self._stopping.set()
        for worker in self._workers.values():
            worker.end_now()
        await asyncio.wait(keepers, timeout=_CUT_S)
        for worker in self._workers.values():
            worker.kill()
        await asyncio.wait(keepers)

    async def _keep(self, number: int) -> None:
        """Has one worker run, by one process after the other, until the whole stops."""
        pause, failed = self._pause_s, 0
        while not self._stopping.is_set():
            worker = self._workers[number] = _Worker()
            started = time.monotonic()
            await self._live(number, worker)
            if self._stopping.is_set():
                return
            failed = 0 if worker.announcement or self._anyone_serves() else failed + 1
            self._judge(number, worker, failed)
            if time.monotonic() - started > _SOUND_S:
                pause = self._pause_s
            told = fields(worker=number, pid=worker.pid, end=worker.end, reason=worker.refusal, pause_s=pause)
            _log.error("A worker ended, and another is started", extra=told)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)
            pause = min(pause * 2, _LONGEST_PAUSE_S)

    async def _live(self, number: int, worker: "_Worker") -> None:
        """Starts a worker, and returns after its end."""
        if await worker.start(self._command(number), self._first_line):
            _log.info("A worker was started", extra=fields(worker=number, pid=worker.pid))
        if self._stopping.is_set():
            worker.drain()
        if await worker.takes_calls() and all(each.serving for each in self._workers.values()):
            self._all_serve.set()
        served = worker.serving
        await worker.ended()
        if served and worker.end != _WELL and self._stopping.is_set() and not self._cut:
            self._ended_badly.append(f"Worker {number} ended by {worker.end} while it drained.")

    def _judge(self, number: int, worker: "_Worker", failed: int) -> None:
        """Raises ReplicasFailed where the end of a worker is the end of all."""
        when = "before all workers served" if worker.announcement else "before it could serve"
        why = worker.refusal or f"Worker {number} ended by {worker.end} {when}."
        if not self._all_serve.is_set():
            raise ReplicasFailed(why)
        if failed >= _FAILED_STARTS:
            raise ReplicasFailed(f"No worker is left, and none can be started. {why}")

    def _anyone_serves(self) -> bool:
        return any(each.serving for each in self._workers.values())


class _Worker:
    """One process, from before its start until after its end."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self.announcement = ""
        """What it told when it began to take calls."""
        self.refusal = ""
        """Why it could not serve."""
        self.serving = False
        self.end = ""
        """How it ended."""

    @property
    def pid(self) -> int | None:
        """Its process id, once started."""
        return None if self._process is None else self._process.pid

    async def start(self, command: Sequence[str], first_line: bytes) -> bool:
        """Starts the process and tells it its settings; False, with ``end`` set, where the system gives none."""
        try:
            # In a group of its own, so that Ctrl-C reaches the parent only, which then asks for one drain.
            self._process = await asyncio.create_subprocess_exec(
                *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, process_group=0
            )
        except OSError as error:
            self.end = error.strerror or str(error)
            return False
        self._tell(first_line)
        return True

    async def takes_calls(self) -> bool:
        """Waits until the worker takes calls; False where it ends before."""
        while not self.serving and await self._hear():
            pass
        return self.serving

    async def ended(self) -> None:
        """Waits for the end of the process."""
        while await self._hear():
            pass
        self.serving = False
        if self._process is not None:
            code = await self._process.wait()
            self.end = signal.Signals(-code).name if code < 0 else f"exit {code}"

    async def _hear(self) -> bool:
        """Takes a line of the worker; False at its end."""
        if self._process is None or self._process.stdout is None:
            return False
        line = await self._process.stdout.readline()
        with contextlib.suppress(ValueError):
            told = json.loads(line)
            self.announcement = told.get("listening", self.announcement)
            self.refusal = told.get("refused", self.refusal)
            self.serving = bool(self.announcement)
        return bool(line)

    def drain(self) -> None:
        """Asks the worker to drain; one that has not begun to serve ends."""
        self._signal(signal.SIGTERM)

    def end_now(self) -> None:
        """Asks the worker to cut its calls and end."""
        self._tell(NOW + b"\n")
        self.drain()

    def kill(self) -> None:
        """Ends the process without asking."""
        self._signal(signal.SIGKILL)

    def _tell(self, line: bytes) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(line)

    def _signal(self, number: int) -> None:
        # It may have ended a moment ago.
        with contextlib.suppress(ProcessLookupError):
            if self._process is not None:
                self._process.send_signal(number)


async def _first_of(keepers: "Sequence[asyncio.Task[None]]", *events: asyncio.Event) -> None:
    """Returns once one of the events is set; raises what a keeper raised."""
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait([*waits, *keepers], return_when=asyncio.FIRST_COMPLETED)
        for keeper in keepers:
            if keeper.done():
                keeper.result()
    finally:
        for wait in waits:
            wait.cancel()
