"""One poller per space for all who watch it: no thread, and no query, per watcher.

Used from the event loop of one server only.
"""

import asyncio
import contextvars
import logging
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from functools import partial

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet_server.domain.call import Call
from ramet_server.domain.errors import Internal, Overloaded, RametError
from ramet_server.serving.workers import Workers
from telemetry.convert.answers import change_message
from telemetry.rules.tail_queries import Change
from telemetry.rules.tailing import Seen, TailRules

POLL_S = 0.5
"""Time between two looks, in seconds."""

_UNTAKEN_MESSAGES = 10_000
_UNTAKEN_BYTES = 8 * 1024 * 1024
_COME_BACK_S = 1.0

_log = logging.getLogger(__name__)

_Told = tuple[str, pb.TailEventsResponse, int]
"""A diagnosis's id, what is told of it, and its size."""


class TailHub:
    """Tells watchers what changes in their spaces."""

    def __init__(self, rules: TailRules, poll_s: float = POLL_S) -> None:
        self._rules = rules
        self._poll_s = poll_s
        self._pollers: dict[str, _Poller] = {}

    async def watch(
        self, space: str, session_id: str | None, workers: Workers
    ) -> AsyncGenerator[pb.TailEventsResponse, None]:
        """Yields changes from now on, of one diagnosis or of all; raises Overloaded where they are taken too slowly."""
        poller = self._pollers.get(space)
        if poller is None:
            poller = self._pollers[space] = _Poller(self._rules, space, workers, self._poll_s)
        watcher = _Watcher(session_id)
        poller.watchers.add(watcher)
        try:
            while True:
                yield await watcher.take()
        finally:
            poller.watchers.discard(watcher)
            if not poller.watchers and self._pollers.get(space) is poller:
                del self._pollers[space]
                poller.stop()


class _Watcher:
    """What one stream has not taken yet."""

    def __init__(self, session_id: str | None) -> None:
        self._session_id = session_id
        self._untaken: deque[_Told] = deque()
        self._bytes = 0
        self._changed = asyncio.Event()
        self._error: RametError | None = None

    def put(self, told: Sequence[_Told]) -> None:
        for each in told:
            if self._session_id in (None, each[0]):
                self._untaken.append(each)
                self._bytes += each[2]
        if len(self._untaken) > _UNTAKEN_MESSAGES or self._bytes > _UNTAKEN_BYTES:
            self._untaken.clear()
            self.fail(Overloaded("The changes were taken too slowly.", retry_after_s=_COME_BACK_S))
        self._changed.set()

    def fail(self, error: RametError) -> None:
        self._error = self._error or error
        self._changed.set()

    async def take(self) -> pb.TailEventsResponse:
        while not self._untaken:
            if self._error is not None:
                raise self._error
            self._changed.clear()
            await self._changed.wait()
        _, message, size = self._untaken.popleft()
        self._bytes -= size
        return message


class _Poller:
    """Looks at one space for as long as it has watchers."""

    def __init__(self, rules: TailRules, space: str, workers: Workers, poll_s: float) -> None:
        self.watchers: set[_Watcher] = set()
        self._rules = rules
        self._call = Call(space)
        self._workers = workers
        self._poll_s = poll_s
        # Not in the context of the watcher that happened to come first.
        self._task = asyncio.create_task(self._run(), name="tail", context=contextvars.Context())

    def stop(self) -> None:
        """Ends the looking; what runs in the database is interrupted."""
        self._call.cancelled.set()
        self._task.cancel()

    async def _run(self) -> None:
        seen: Seen | None = None
        try:
            while True:
                try:
                    if seen is None:
                        seen = await self._workers.run(lambda: self._rules.begin(self._call))
                    else:
                        await self._look(seen)
                except RametError as error:
                    # The next look finds what this one did not tell.
                    _log.info("A look at changes failed: %s", error.reason)
                await asyncio.sleep(self._poll_s)
        except Exception:  # noqa: BLE001 - watchers must not wait for ever for a poller that is gone
            _log.exception("A look at changes failed in a way that no rule foresaw")
            for watcher in self.watchers:
                watcher.fail(Internal("The changes cannot be read."))

    async def _look(self, seen: Seen) -> None:
        look = await self._workers.run(lambda: self._rules.look(self._call, seen))
        for some in look.parts():
            told = await self._workers.run(partial(self._told, some))
            seen.remember(some)
            for watcher in self.watchers:
                watcher.put(told)
        seen.finish(look)

    def _told(self, changes: Sequence[Change]) -> list[_Told]:
        messages = [(row.session_id, change_message(row)) for row in self._rules.rows(self._call, changes)]
        return [(session_id, message, message.ByteSize()) for session_id, message in messages]
