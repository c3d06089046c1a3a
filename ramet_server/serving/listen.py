"""The gRPC server of a process: bind, serve, drain."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from grpc_health.v1 import health, health_pb2_grpc

from ramet_server.serving.address import AddressRefused, check_free
from ramet_server.serving.door import Door
from ramet_server.serving.handlers import Setting, generic_handler
from ramet_server.serving.health import Health
from ramet_server.serving.long_calls import LongCalls
from ramet_server.serving.readiness import Readiness, StartRefused
from ramet_server.serving.reflection import reflection_handlers
from ramet_server.serving.settings import Settings
from ramet_server.serving.workers import Workers

CLIENT_PING_MS = 10_000
"""How often a client may ping; gRPC's own default of five minutes ends connections of ordinary clients."""

_STUCK_THREAD_S = 5.0
_CUT_THREAD_S = 1.0
_REFUSING_S = 5.0
_LAST_REPLIES_S = 0.5

_log = logging.getLogger(__name__)

Background = Callable[[Workers], Coroutine[Any, Any, None]]
"""Work that runs beside the calls once the server is ready, until it drains; it must not block the loop."""


@dataclass(frozen=True)
class Servicer:
    """A servicer and the service it answers."""

    descriptor: ServiceDescriptor
    servicer: object


class Server:
    """One gRPC server, used from one event loop."""

    def __init__(
        self,
        settings: Settings,
        servicers: Sequence[Servicer],
        prepare: Callable[[], None],
        ping: Callable[[], None],
        *,
        insist: bool,
        background: Sequence[Background] = (),
    ) -> None:
        """Takes the servicers, and of the database what readiness needs; see Readiness."""
        names = [each.descriptor.full_name for each in servicers]
        self._settings = settings
        self._insist = insist
        self._background = background
        self._long_calls = LongCalls()
        self._workers = Workers(settings.pool_size, settings.queue_size)
        self._health = Health(names, self._long_calls)
        self._readiness = Readiness(prepare, ping, lambda ready: self._health.show(ready=ready))
        self._door = Door(self._readiness.check)
        setting = Setting(self._workers, self._door, self._long_calls, settings.max_message_bytes)
        self._server = grpc.aio.server(options=_options(settings))
        self._server.add_generic_rpc_handlers(
            [generic_handler(each.descriptor, each.servicer, setting) for each in servicers]
            + reflection_handlers([*names, health.SERVICE_NAME], self._long_calls)
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        self._tasks: list[asyncio.Task[None]] = []
        self._ended = False
        self.address = settings.listen
        """Where the server listens; with its real port once started."""

    async def start(self) -> None:
        """Binds and listens; raises StartRefused where the address cannot be had."""
        await self._health.show(ready=False)
        if self._settings.workers > 1:
            # Others may serve at the address already: no connection should come here before calls can begin.
            self._begin()
            await self.wait_for_first_look()
        self.address = self._bind(self._settings.listen)
        await self._server.start()
        if not self._tasks:
            self._begin()

    def _begin(self) -> None:
        self._tasks = [asyncio.create_task(self._readiness.keep(insist=self._insist), name="readiness")]
        self._tasks += [asyncio.create_task(self._beside(work), name="background") for work in self._background]

    async def wait_for_first_look(self) -> None:
        """Returns once the database was looked at; raises StartRefused where what was found forbids to serve."""
        await self._first_of(self._readiness.looked)

    async def wait_until_ready(self) -> None:
        """Returns once calls may begin; raises StartRefused where they never will."""
        await self._first_of(self._readiness.ready)

    async def serve(self, stop: asyncio.Event) -> None:
        """Serves until ``stop`` is set; raises StartRefused where the database forbids to serve."""
        await self._first_of(stop)

    async def drain(self) -> None:
        """Lets calls in flight finish, refuses new ones, and returns when all is still."""
        _log.info("Draining")
        await self._health.enter_graceful_shutdown()
        await asyncio.sleep(self._settings.lame_duck_seconds)
        until = time.monotonic() + self._settings.grace_seconds
        self._door.shut()
        self._long_calls.drain()
        for task in self._tasks:
            task.cancel()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._door.wait_until_empty(), self._settings.grace_seconds)
        # gRPC's own stop answers CANCELLED to calls that have arrived but were not yet taken up, which no
        # client takes for a reason to retry. So first the door tells them all to come again later.
        rest = max(_LAST_REPLIES_S, until - time.monotonic())
        await self._door.wait_until_quiet(min(_REFUSING_S, rest))
        # The last replies may still be on their way.
        await self._server.stop(max(_LAST_REPLIES_S, until - time.monotonic()))
        await self._end(_STUCK_THREAD_S)
        _log.info("Drained")

    async def stop_now(self) -> None:
        """Ends at once; calls in flight are cancelled. May be called while ``drain`` waits."""
        for task in self._tasks:
            task.cancel()
        await self._server.stop(None)
        await self._end(_CUT_THREAD_S)

    async def _end(self, patience_s: float) -> None:
        if self._ended:
            return
        self._ended = True
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if not await asyncio.to_thread(self._workers.close, patience_s):
            _log.warning("A thread is stuck in the database and will be left behind")

    async def _first_of(self, event: asyncio.Event) -> None:
        wait = asyncio.create_task(event.wait())
        await asyncio.wait({wait, *self._tasks}, return_when=asyncio.FIRST_COMPLETED)
        try:
            for task in self._tasks:
                if task.done():
                    task.result()
        finally:
            wait.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await wait

    async def _beside(self, work: Background) -> None:
        await self._readiness.ready.wait()
        await work(self._workers)

    def _bind(self, address: str) -> str:
        try:
            if self._settings.workers == 1:
                check_free(address)
            port = self._server.add_insecure_port(address)
        except AddressRefused as error:
            raise StartRefused(str(error)) from error
        except RuntimeError as error:
            raise StartRefused(f"Cannot listen on {address}.") from error
        return address if address.startswith("unix:") else f"{address.rpartition(':')[0]}:{port}"


def _options(settings: Settings) -> list[tuple[str, Any]]:
    options: list[tuple[str, Any]] = [
        # Two servers on one port would share its connections by chance in place of an error. Where several
        # workers share it on purpose, their parent holds it against other servers.
        ("grpc.so_reuseport", int(settings.workers > 1)),
        ("grpc.max_receive_message_length", settings.max_message_bytes),
        ("grpc.max_send_message_length", settings.max_message_bytes),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", CLIENT_PING_MS),
        ("grpc.keepalive_permit_without_calls", 1),
        # A client that vanished without a word is noticed within these two together.
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
    ]
    if settings.max_connection_age_seconds:
        options += [
            ("grpc.max_connection_age_ms", round(settings.max_connection_age_seconds * 1000)),
            ("grpc.max_connection_age_grace_ms", round(settings.grace_seconds * 1000)),
        ]
    return options
