"""Kills a server at one step of an operation after the other, and looks at what is left each time."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import ramet
from tests.crash.operations import Operation, prepare
from tests.crash.shown import Shown, shown
from tests.harness.server import ServerProcess

_COMMAND = (sys.executable, "-m", "tests.crash.doomed", "all")
_NEVER = 1_000_000
_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Cut:
    """What one kill left."""

    step: int
    """The fatal step, from 1."""
    left: str
    """``before``, ``between`` or ``after``: as if the operation had not begun, was under way, or had ended."""


async def kill_at_each_step(operation: Operation, url: str, folder: Path, every: int = 1) -> list[Cut]:
    """Kills at the steps 1, 1 + ``every`` and so on, until the operation ends before its fatal step.

    After each kill nothing may show that the operation does not name, and the operation, repeated with its
    request_id, must end as if nothing had happened, once. Returns what each kill left.
    """
    after = await _uncut(operation, url, folder)
    cuts: list[Cut] = []
    # A server that is to die looks first at what the death before it left: one start a step instead of two.
    look: _Look | None = None
    for step in count(1, every):
        with ServerProcess(folder, _settings(url, step), _COMMAND) as server:
            if look is not None:
                cuts.append(await look(server))
            before, died = await _doomed(operation, server, step)
        look = _Look(operation, step, before, after)
        if not died:
            break
    assert look is not None
    with ServerProcess(folder, _settings(url)) as server:
        await look(server)
    return cuts


@dataclass(frozen=True)
class _Look:
    """What is looked at after one kill."""

    operation: Operation
    step: int
    before: Shown
    after: Shown

    async def __call__(self, server: ServerProcess) -> Cut:
        what = f"{self.operation}, killed at step {self.step}"
        async with _client(server, self.operation, self.step) as client:
            left = self._judge(await shown(client), what)
            for _ in range(2):
                await self.operation.act(client)
                assert await shown(client) == self.after, f"{what}, then repeated"
        return Cut(self.step, left)

    def _judge(self, now: Shown, what: str) -> str:
        if now == self.before:
            return "before"
        if now == self.after:
            return "after"
        allowed = [state(self.before, self.after) for state in self.operation.between]
        assert now in allowed, f"{what}, shows what it should not: {now}"
        return "between"


async def _uncut(operation: Operation, url: str, folder: Path) -> Shown:
    """Returns what shows after the operation when nothing is killed."""
    with ServerProcess(folder, _settings(url)) as server:
        async with _client(server, operation, "whole") as client:
            await prepare(client)
            await operation.act(client)
            return await shown(client)


async def _doomed(operation: Operation, server: ServerProcess, step: int) -> tuple[Shown, bool]:
    """Runs the operation on a server that dies at a step; returns what showed before, and whether it came to that."""
    async with _client(server, operation, step) as client:
        await prepare(client)
        before = await shown(client)
        os.kill(server.process.pid, signal.SIGUSR1)
        acting = asyncio.ensure_future(operation.act(client))
        dying = asyncio.ensure_future(asyncio.to_thread(server.process.wait))
        await asyncio.wait((acting, dying), return_when=asyncio.FIRST_COMPLETED)
        # The death may come just after the operation's reply.
        died = dying.done() or not await _alive(client)
        acting.cancel()
        with suppress(asyncio.CancelledError, ramet.RametError):
            await acting
        server.kill()
        await dying
        return before, died


async def _alive(client: ramet.Client) -> bool:
    try:
        await client.with_options(timeout=2).sessions.get_server_info()
    except ramet.RametError:
        return False
    return True


def _client(server: ServerProcess, operation: Operation, step: int | str) -> ramet.Client:
    """Each step has a space of its own, so that none meets what another left."""
    return ramet.connect(server.address, space=f"{operation.name}-{step}", timeout=_TIMEOUT_S)


def _settings(url: str, step: int = _NEVER) -> Mapping[str, str]:
    """One worker connection and no sweep, so that the steps are those of the operation, in its order."""
    return {
        "RAMET_DATABASE_URL": url,
        "RAMET_POOL_SIZE": "1",
        "RAMET_SWEEP_SECONDS": "0",
        "DOOMED_AT": str(step),
    }
