"""A server of the tiny service, and what talks to it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2

from ramet_server.serving.door import Door
from ramet_server.serving.handlers import Setting, generic_handler
from ramet_server.serving.long_calls import LongCalls
from ramet_server.serving.status import DETAILS_KEY
from ramet_server.serving.workers import Workers
from tests.serving.echo_service import DESCRIPTOR, NAME, EchoServicer, Text


@dataclass
class Echo:
    """A running server of the tiny service and a channel to it."""

    servicer: EchoServicer
    workers: Workers
    long_calls: LongCalls
    channel: grpc.aio.Channel
    address: str
    server: grpc.aio.Server

    def method(self, name: str) -> Any:
        """Returns a callable for a method, with the kind that the descriptor says."""
        return method_of(self.channel, name)


def method_of(channel: Any, name: str) -> Any:
    """Returns a channel's callable for a method of the tiny service."""
    method = DESCRIPTOR.methods_by_name[name]
    kinds = {
        (False, False): channel.unary_unary,
        (False, True): channel.unary_stream,
        (True, False): channel.stream_unary,
        (True, True): channel.stream_stream,
    }
    kind = kinds[method.client_streaming, method.server_streaming]
    return kind(f"/{NAME}/{name}", request_serializer=Text.SerializeToString, response_deserializer=Text.FromString)


def details_of(error: grpc.aio.AioRpcError) -> status_pb2.Status:
    """Returns the rich status that an error brought."""
    raw = (error.trailing_metadata() or {}).get(DETAILS_KEY)
    assert isinstance(raw, bytes)
    return status_pb2.Status.FromString(raw)


def reason_of(error: grpc.aio.AioRpcError) -> str:
    """Returns the reason that an error brought."""
    info = error_details_pb2.ErrorInfo()
    assert details_of(error).details[0].Unpack(info)
    assert info.domain == "ramet"
    reason: str = info.reason
    return reason


EchoStarter = Callable[..., Any]


@asynccontextmanager
async def _echo(
    threads: int = 2, queue_size: int = 100, check: Callable[[], None] = lambda: None, max_message_bytes: int = 1 << 20
) -> AsyncIterator[Echo]:
    servicer = EchoServicer()
    workers = Workers(threads, queue_size)
    long_calls = LongCalls()
    setting = Setting(workers, Door(check), long_calls, max_message_bytes)
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers([generic_handler(DESCRIPTOR, servicer, setting)])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    address = f"127.0.0.1:{port}"
    async with grpc.aio.insecure_channel(address) as channel:
        try:
            yield Echo(servicer, workers, long_calls, channel, address, server)
        finally:
            servicer.gate.go.set()
            await server.stop(None)
            assert workers.close(10)


@pytest.fixture
def echo_server() -> EchoStarter:
    """Starts a server of the tiny service: ``async with echo_server(threads=2) as echo``."""
    return _echo
