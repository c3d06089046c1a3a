"""The asyncio client: connections to the services, and the contracts over them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from types import TracebackType
from typing import Self

import grpc

from ramet.client.arguments import check_seconds, check_space, of_kind, refused
from ramet.client.calls import Caller, Settings
from ramet.client.channel import open_channel
from ramet.client.sessions import SessionStorageClient
from ramet.client.telemetry import TelemetryClient
from ramet.client.trees import SessionTreeClient

__all__ = ["DEFAULT_SPACE", "DEFAULT_TIMEOUT_S", "Client", "connect"]

DEFAULT_SPACE = "default"
"""The space of calls that name none."""

DEFAULT_TIMEOUT_S = 10.0
"""Deadline of a call, in seconds, where none is set."""


def connect(
    address: str | None = None,
    *,
    session: str | None = None,
    tree: str | None = None,
    telemetry: str | None = None,
    space: str = DEFAULT_SPACE,
    timeout: float = DEFAULT_TIMEOUT_S,
    credentials: grpc.ChannelCredentials | None = None,
    interceptors: Sequence[grpc.aio.ClientInterceptor] = (),
) -> "Client":
    """Makes a client of the services at one address, or at one address per service.

    ``async with ramet.connect("127.0.0.1:50051") as client: ...``. Nothing is sent before the first call. ``space`` is
    what the calls are about, ``timeout`` the deadline of each in seconds, retries included. Without ``credentials`` the
    connection is not encrypted. An address is any target that gRPC takes, as ``dns:///ramet:50051``.
    """
    addresses = _Addresses(session or address, tree or address, telemetry or address)
    if addresses == _Addresses(None, None, None):
        raise refused("address", "connect() needs one, as in connect('127.0.0.1:50051')")
    for name, target in vars(addresses).items():
        if target is not None:
            of_kind(str, target, "address" if target == address else name)
    settings = Settings(check_space(space), check_seconds(timeout, "timeout"))
    return Client(_Connection(addresses, credentials, tuple(interceptors)), settings)


class Client:
    """An asyncio client of Ramet, made by :func:`connect`. It belongs to the event loop of its first call."""

    def __init__(self, connection: "_Connection", settings: Settings) -> None:
        self._connection = connection
        self._settings = settings
        self._sessions: SessionStorageClient | None = None
        self._tree: SessionTreeClient | None = None
        self._telemetry: TelemetryClient | None = None

    @property
    def sessions(self) -> SessionStorageClient:
        """The content of sessions: the contract SessionStorage."""
        channel = self._connection.session_channel()
        if self._sessions is None:
            self._sessions = SessionStorageClient(channel, self._caller("session"))
        return self._sessions

    @property
    def tree(self) -> SessionTreeClient:
        """The forest: the contract SessionTree."""
        channel = self._connection.tree_channel()
        if self._tree is None:
            self._tree = SessionTreeClient(channel, self._caller("tree"))
        return self._tree

    @property
    def telemetry(self) -> TelemetryClient:
        """What agents did: the contract Telemetry, its answers."""
        channel = self._connection.telemetry_channel()
        if self._telemetry is None:
            self._telemetry = TelemetryClient(channel, self._caller("telemetry"))
        return self._telemetry

    def _caller(self, service: str) -> Caller:
        return Caller(self._settings, self._connection.address(service))

    @property
    def space(self) -> str:
        """The space that the calls are about."""
        return self._settings.space

    def with_options(self, *, space: str | None = None, timeout: float | None = None) -> "Client":
        """Returns a client with another space or deadline over the same connections; closing one closes both."""
        settings = self._settings
        if space is not None:
            settings = replace(settings, space=check_space(space))
        if timeout is not None:
            settings = replace(settings, timeout_s=check_seconds(timeout, "timeout"))
        return Client(self._connection, settings)

    async def close(self) -> None:
        """Closes the connections; calls under way raise Cancelled."""
        await self._connection.close()

    async def __aenter__(self) -> Self:
        """Returns the client itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the connections."""
        await self.close()


@dataclass(frozen=True)
class _Addresses:
    session: str | None
    tree: str | None
    telemetry: str | None


class _Connection:
    """The channels of a client; one where services share an address."""

    def __init__(
        self,
        addresses: _Addresses,
        credentials: grpc.ChannelCredentials | None,
        interceptors: tuple[grpc.aio.ClientInterceptor, ...],
    ) -> None:
        self._addresses = addresses
        self._credentials = credentials
        self._interceptors = interceptors
        self._loop: asyncio.AbstractEventLoop | None = None
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._closed = False

    def session_channel(self) -> grpc.aio.Channel:
        return self._channel(self._addresses.session, "session")

    def tree_channel(self) -> grpc.aio.Channel:
        return self._channel(self._addresses.tree, "tree")

    def telemetry_channel(self) -> grpc.aio.Channel:
        return self._channel(self._addresses.telemetry, "telemetry")

    def address(self, service: str) -> str:
        return str(getattr(self._addresses, service))

    async def close(self) -> None:
        self._closed = True
        channels, self._channels = self._channels, {}
        for channel in channels.values():
            await channel.close()

    def _channel(self, address: str | None, service: str) -> grpc.aio.Channel:
        if address is None:
            raise RuntimeError(f"connect() was given no address of the {service} service")
        if self._closed:
            raise RuntimeError("this client is closed")
        loop = asyncio.get_running_loop()
        if self._loop not in (None, loop):
            raise RuntimeError("this client belongs to another event loop: make one client per loop")
        if address not in self._channels:
            # A channel binds to the running loop, so it is opened by the first call rather than by connect().
            self._loop = loop
            self._channels[address] = open_channel(
                address,
                credentials=self._credentials,
                user_agent=f"ramet-python/{version('ramet')}",
                interceptors=self._interceptors,
            )
        return self._channels[address]
