"""The thread in the background: it connects, sends, waits, spools, and takes over what other processes left."""

import asyncio
import logging
import random
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from time import monotonic

import grpc

from ramet.recorder.backlog import Backlog
from ramet.recorder.feed import Feed
from ramet.recorder.forking import used_grpc
from ramet.recorder.loops import new_loop
from ramet.recorder.spool import SpaceSpool, Spool
from ramet.recorder.streaming import Stream, StreamFault
from ramet.recorder.values import Limits

__all__ = ["Sender", "Target", "backoff_s"]

_log = logging.getLogger("ramet.recorder")

_SLOW_S = 1.0
"""How long events wait for a server before they are brought to disk."""
_PROMPT_S = 0.2
_LOOK_S = 0.5
_ADOPT_S = 20.0
_MAX_MESSAGE_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class Target:
    """Where events go."""

    address: str
    space: str
    credentials: grpc.ChannelCredentials | None
    user_agent: str


def backoff_s(limits: Limits, failures: int, chance: random.Random) -> float:
    """Returns the pause after so many failed connections, in seconds: it doubles up to its limit; half is by chance."""
    pause: float = min(limits.first_backoff_s * 2 ** min(failures, 20), limits.longest_backoff_s)
    return pause * chance.uniform(0.5, 1.0)


class _State(Enum):
    CONNECTING = auto()
    STREAMING = auto()
    WAITING = auto()


class Sender:
    """Brings a backlog to a server. Nothing here runs on an agent's thread but the starting, waking and ending."""

    def __init__(
        self,
        target: Target,
        limits: Limits,
        backlog: Backlog,
        feed: Feed,
        spool: SpaceSpool | None,
    ) -> None:
        self._target = target
        self._limits = limits
        self._backlog = backlog
        self._feed = feed
        self._spool = spool
        self._loop = new_loop()
        self._arrived = asyncio.Event()
        self._ending = asyncio.Event()
        # Its own numbers: the application's draws from the common ones stay what its seed makes them.
        self._random = random.Random()  # noqa: S311 - spreads the producers, guards nothing
        self._hurry = False
        self._end_at = float("inf")
        self._state = _State.CONNECTING
        self._since = monotonic()
        self._stream: Stream | None = None
        self.adopting = spool is not None
        """Whether there may be something left by other processes that was not tried yet."""
        self.ended = threading.Event()
        """Set when the thread has done all that it will do."""
        self._thread = threading.Thread(target=self._run, name="ramet-recorder", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Says that there are events, or that somebody waits for them."""
        self._call(self._arrived.set)

    def hurry(self) -> None:
        """Says that somebody waits: what has come goes out without lingering."""
        self._hurry = True
        self.wake()

    def end(self, at: float) -> None:
        """Asks the thread to send what it can until ``at`` (monotonic), spool the rest, and end."""
        self._end_at = at
        self._hurry = True
        self._call(self._ending.set)

    def _call(self, work: Callable[[], object]) -> None:
        self._loop.call_soon_threadsafe(work)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._main())
        except Exception:  # noqa: BLE001 - nobody else would hear of it; agents must not
            _log.exception("The recorder's thread has failed; events are dropped from now on.")
            self._backlog.close()
        finally:
            self.ended.set()
            self._backlog.settle()
            self._loop.close()

    async def _main(self) -> None:
        tasks = [asyncio.create_task(self._keep()), asyncio.create_task(self._send())]
        if self._spool is not None:
            tasks.append(asyncio.create_task(self._adopt(self._spool)))
        ending = asyncio.create_task(self._finish())
        try:
            await asyncio.wait([*tasks, ending], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*tasks, ending):
                task.cancel()
            results = await asyncio.gather(*tasks, ending, return_exceptions=True)
            self._feed.spill()
            self._feed.close()
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _finish(self) -> None:
        """Returns when it is time to end: all is sent, or the time is over, or nobody takes anything."""
        await self._ending.wait()
        self._arrived.set()
        begun = monotonic()
        while monotonic() < self._end_at and not (self._backlog.settled and not self.adopting):
            if self._state is _State.WAITING:
                return
            # What is on disk is safe whatever comes; a server that answers is given a moment first.
            if self._state is _State.CONNECTING or monotonic() - begun > _PROMPT_S:
                self._feed.spill()
            if self._stream is not None:
                self._stream.wake()
            await asyncio.sleep(0.01)

    async def _keep(self) -> None:
        """Lets events wait for each other, then tells the stream of them, or brings them to disk."""
        while True:
            if self._backlog.sleep():
                self._arrived.set()
            pending = not self._feed.empty
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S if pending else None):
                    await self._arrived.wait()
            self._arrived.clear()
            # Even in a hurry: others run on this loop, too.
            await asyncio.sleep(min(self._limits.linger_s, 0.002) if self._hurry else self._limits.linger_s)
            self._hurry = self._ending.is_set()
            if self._slow():
                self._feed.spill()
            if self._stream is not None:
                self._stream.wake()
            if self._backlog.size and not self._hurry:
                # They wait for the stream, or for room on the disk; there is nothing to do here meanwhile.
                await asyncio.sleep(self._limits.linger_s)

    def _slow(self) -> bool:
        if self._state is _State.WAITING:
            return True
        now = monotonic()
        if self._state is _State.CONNECTING:
            return now - self._since > _SLOW_S
        waiting_since = self._feed.waiting_since
        stuck = waiting_since is not None and now - waiting_since > _SLOW_S
        return stuck or self._backlog.size > self._limits.queue_bytes // 2

    async def _send(self) -> None:
        """Connects, again and again."""
        failures, senseless = 0, 0
        while True:
            self._enter(_State.CONNECTING)
            stream = Stream(self._feed, self._limits, self._welcomed, careful=senseless > 0)
            self._stream = stream
            try:
                async with self._channel() as channel:
                    await stream.run(channel, self._metadata())
            except StreamFault as fault:
                failures = 0 if stream.progress else failures + 1
                senseless = senseless + 1 if fault.code is grpc.StatusCode.INVALID_ARGUMENT else 0
                if senseless > 1 and not stream.progress:
                    self._feed.give_up_first()
                if failures == 1:
                    _log.warning("Events wait: %s (%s)", self._target.address, fault)
            finally:
                self._stream = None
            self._enter(_State.WAITING)
            self._arrived.set()
            await asyncio.sleep(backoff_s(self._limits, failures, self._random))

    def _welcomed(self) -> None:
        self._enter(_State.STREAMING)

    def _enter(self, state: _State) -> None:
        self._state, self._since = state, monotonic()

    async def _adopt(self, space: SpaceSpool) -> None:
        """Sends what processes that are gone have left, one after the other, while this one is connected."""
        while True:
            spool = space.adopt() if self._state is _State.STREAMING else None
            if spool is not None and await self._adopted(space, spool):
                continue
            if self.adopting and (spool is not None or self._state is _State.STREAMING):
                self.adopting = False
                # Somebody may wait for just this.
                self._backlog.settle()
            await asyncio.sleep(_LOOK_S / 10 if self.adopting else _ADOPT_S)

    async def _adopted(self, space: SpaceSpool, spool: Spool) -> bool:
        """Sends what is in a spool; returns whether that was possible."""
        feed = Feed(spool.producer_id, self._backlog, spool, adopted=True)
        try:
            feed.load()
            async with self._channel() as channel:
                await Stream(feed, self._limits, lambda: None).run(channel, self._metadata(), until_empty=True)
        except StreamFault as fault:
            _log.info("What another process left waits: %s", fault)
            return False
        finally:
            feed.leave()
            space.let_go(spool)
        return True

    def _channel(self) -> grpc.aio.Channel:
        options: list[tuple[str, str | int]] = [
            ("grpc.primary_user_agent", self._target.user_agent),
            # A connection of its own: its end must say nothing of anybody else's.
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES),
            ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
            # The pauses between connections are made here.
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 1_000),
            ("grpc.enable_retries", 0),
            ("grpc.keepalive_time_ms", 15_000),
            ("grpc.keepalive_timeout_ms", 10_000),
            ("grpc.keepalive_permit_without_calls", 0),
        ]
        used_grpc()
        if self._target.credentials is None:
            return grpc.aio.insecure_channel(self._target.address, options=options)
        return grpc.aio.secure_channel(self._target.address, self._target.credentials, options=options)

    def _metadata(self) -> grpc.aio.Metadata:
        return grpc.aio.Metadata(("ramet-space", self._target.space))
