"""A gRPC server of one method, its messages left as bytes: what every bare server is made of."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable

import grpc

Behaviour = Callable[[bytes, "grpc.aio.ServicerContext[bytes, bytes]"], Awaitable[bytes]]
StreamBehaviour = Callable[
    [AsyncIterator[bytes], "grpc.aio.ServicerContext[bytes, bytes]"],
    AsyncIterator[bytes],
]

METHOD = "/ramet.bare.v1.Bare/Call"
"""The only method that a bare server has."""

_OPTIONS = (("grpc.max_receive_message_length", 64 << 20), ("grpc.max_send_message_length", 64 << 20))


async def serve(listen: str, behave: Behaviour) -> None:
    """Serves calls of one message until SIGTERM; tells on standard output where."""
    await _serve(listen, grpc.unary_unary_rpc_method_handler(behave))


async def serve_streams(listen: str, behave: StreamBehaviour) -> None:
    """Serves streams both ways until SIGTERM; tells on standard output where."""
    await _serve(listen, grpc.stream_stream_rpc_method_handler(behave))


async def _serve(listen: str, handler: "grpc.RpcMethodHandler[bytes, bytes]") -> None:
    server = grpc.aio.server(options=_OPTIONS)
    _, service, method = METHOD.split("/")
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {method: handler}),))
    port = server.add_insecure_port(listen)
    await server.start()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    print(f"Listening on 127.0.0.1:{port}", flush=True)
    await stop.wait()
    await server.stop(1.0)
