"""Watches: streams that tell what is new behind a position, and then wait until there is more.

A watcher holds a position and nothing else. It reads a page from the database whenever its client has taken the
page before, so a slow client costs one page and delays nobody. The hub only says that something moved: at once where
this process committed it, and else by one query per interval for all that is watched. Used from the event loop of
one server only.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from ramet_server.domain.call import Call
from ramet_server.domain.errors import RametError
from ramet_server.serving.polling import PATIENCE_S, Poller
from ramet_server.serving.workers import Workers

_KEYS_PER_QUERY = 500
"""MariaDB turns a list of 1,000 values and more into a join."""

_READS_AT_ONCE = 2
"""Watchers that read at once, however many are woken; the other threads are left to calls.

The turns also pace the sending, and who waits for one reads more at once. Measured with a thousand watchers of one
forest: one reading shared by all told them no sooner, and held up other calls some ten times as long.
"""

Stand = Hashable
"""Where something that is watched stands; whoever saw another one has something to read."""

Stands = Callable[[Call, Collection[str]], Mapping[str, Stand]]
"""Tells where the things of these keys stand; without those that are gone."""

M = TypeVar("M")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Step(Generic[M]):
    """What a watcher finds behind its position."""

    message: M | None
    """None where there is nothing to tell."""
    stand: Stand
    """Where the watched thing stood as it was read."""
    more: bool = False
    """Whether there is more to read at once."""


class WatchHub:
    """Wakes those who watch things of one kind."""

    def __init__(self, stands: Stands, poll_s: float, patience_s: float = PATIENCE_S) -> None:
        """Takes what looks things up, a blocking function, and the time between two looks in seconds.

        Watches end once the database has been away for ``patience_s`` seconds.
        """
        self._stands = stands
        self._poll_s = poll_s
        self._patience_s = patience_s
        self._places: dict[str, set[_Place]] = {}
        self._poller: Poller | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reads = asyncio.Semaphore(_READS_AT_ONCE)

    def moved(self, key: str) -> None:
        """Wakes those who watch a thing that was just changed; may be called from any thread."""
        if key in self._places and self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(self._wake, key)
            except RuntimeError:
                # The loop has ended, and with it whoever watched.
                return

    async def read(self, workers: Workers, fn: Callable[[], T]) -> T:
        """Runs what reads for a watcher on a worker thread, few of them at a time."""
        async with self._reads:
            # Not bounded: the watch was admitted as a call, and here it waits its turn already.
            return await workers.run(fn, bounded=False)

    async def follow(self, key: str, workers: Workers, step: Callable[[], Step[M]]) -> AsyncGenerator[M, None]:
        """Yields what ``step``, a blocking function, finds, and runs it again whenever the thing may have moved.

        It goes on until ``step`` raises, or until the database is away for too long.
        """
        with self._place(key, workers) as place:
            while True:
                # First, so that what moves during the reading is not taken for seen.
                place.begin()
                found = await self.read(workers, step)
                if found.message is not None:
                    yield found.message
                if not found.more:
                    await place.wait_for_move(found.stand)

    @contextmanager
    def _place(self, key: str, workers: Workers) -> Iterator["_Place"]:
        place = _Place()
        self._loop = asyncio.get_running_loop()
        self._places.setdefault(key, set()).add(place)
        if self._poller is None:
            self._poller = Poller(
                partial(self._look, workers), self._fail, poll_s=self._poll_s, patience_s=self._patience_s
            )
        try:
            yield place
        finally:
            here = self._places[key]
            here.discard(place)
            if not here:
                del self._places[key]
            if not self._places and self._poller is not None:
                self._poller.stop()
                self._poller = None

    async def _look(self, workers: Workers, call: Call) -> None:
        keys = list(self._places)
        for start in range(0, len(keys), _KEYS_PER_QUERY):
            some = keys[start : start + _KEYS_PER_QUERY]
            found = await workers.run(partial(self._stands, call, some), bounded=False)
            for key in some:
                stand = found.get(key)
                for place in self._places.get(key, ()):
                    place.compare(stand)

    def _wake(self, key: str) -> None:
        for place in self._places.get(key, ()):
            place.wake()

    def _fail(self, error: RametError) -> None:
        # Whoever comes after this starts another.
        self._poller = None
        for places in self._places.values():
            for place in places:
                place.fail(error)


class _Place:
    """One watcher, at the hub."""

    __slots__ = ("_error", "_moved", "_seen")

    def __init__(self) -> None:
        self._moved = asyncio.Event()
        self._seen: Stand | None = None
        self._error: RametError | None = None

    def begin(self) -> None:
        """Marks that a reading begins."""
        self._moved.clear()

    async def wait_for_move(self, seen: Stand) -> None:
        """Returns once the thing may stand elsewhere than where it was seen."""
        self._seen = seen
        if self._error is None:
            await self._moved.wait()
        if self._error is not None:
            # A new one for each watcher, since a raised error collects a traceback.
            raise type(self._error)(self._error.message, retry_after_s=self._error.retry_after_s)

    def compare(self, stand: Stand | None) -> None:
        """Takes where the thing stands now; None where it is gone."""
        if stand != self._seen:
            self.wake()

    def wake(self) -> None:
        """Has the watcher read again."""
        self._moved.set()

    def fail(self, error: RametError) -> None:
        """Ends the watch."""
        self._error = error
        self._moved.set()
