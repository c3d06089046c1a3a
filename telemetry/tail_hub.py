"""One poller per space for all who watch it: no thread, and no query, per watcher.

Used from the event loop of one server only.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from functools import partial

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet_server.domain.call import Call
from ramet_server.domain.errors import Overloaded, RametError
from ramet_server.serving.polling import Poller
from ramet_server.serving.workers import Workers
from telemetry.convert.answers import change_message
from telemetry.rules.tail_queries import Change
from telemetry.rules.tailing import Seen, TailRules

_UNTAKEN_MESSAGES = 10_000
_UNTAKEN_BYTES = 8 * 1024 * 1024
_COME_BACK_S = 1.0

_Told = tuple[str, pb.TailEventsResponse, int]
"""A diagnosis's id, what is told of it, and its size."""


class TailHub:
    """Tells watchers what changes in their spaces."""

    def __init__(self, rules: TailRules, poll_s: float) -> None:
        """Takes the time between two looks, in seconds."""
        self._rules = rules
        self._poll_s = poll_s
        self._watched: dict[str, _Watched] = {}

    async def watch(
        self, space: str, session_id: str | None, workers: Workers
    ) -> AsyncGenerator[pb.TailEventsResponse, None]:
        """Yields changes from now on, of one diagnosis or of all; raises Overloaded where they are taken too slowly."""
        watched = self._watched.get(space)
        if watched is None or watched.over:
            watched = self._watched[space] = _Watched(self._rules, space, workers, self._poll_s)
        watcher = _Watcher(session_id)
        watched.watchers.add(watcher)
        try:
            while True:
                yield await watcher.take()
        finally:
            watched.watchers.discard(watcher)
            if not watched.watchers:
                watched.stop()
                if self._watched.get(space) is watched:
                    del self._watched[space]


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


class _Watched:
    """One space, looked at for as long as it has watchers."""

    def __init__(self, rules: TailRules, space: str, workers: Workers, poll_s: float) -> None:
        self.watchers: set[_Watcher] = set()
        self.over = False
        """Whether nobody looks any more; whoever comes then has another look begun."""
        self._rules = rules
        self._workers = workers
        self._seen: Seen | None = None
        # For ever, because a watch that ends here cannot be resumed.
        self._poller = Poller(self._look, self._fail, poll_s=poll_s, space=space, patience_s=None)

    def stop(self) -> None:
        """Ends the looking."""
        self._poller.stop()

    async def _look(self, call: Call) -> None:
        seen = self._seen
        if seen is None:
            self._seen = await self._workers.run(lambda: self._rules.begin(call))
            return
        look = await self._workers.run(lambda: self._rules.look(call, seen))
        for some in look.parts():
            told = await self._workers.run(partial(self._told, call, some))
            seen.remember(some)
            for watcher in self.watchers:
                watcher.put(told)
        seen.finish(look)

    def _fail(self, error: RametError) -> None:
        self.over = True
        for watcher in self.watchers:
            watcher.fail(error)

    def _told(self, call: Call, changes: Sequence[Change]) -> list[_Told]:
        messages = [(row.session_id, change_message(row)) for row in self._rules.rows(call, changes)]
        return [(session_id, message, message.ByteSize()) for session_id, message in messages]
