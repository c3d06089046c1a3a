"""The one place that says how this client talks to a server: retries, keepalive, limits, balancing."""

import json
from collections.abc import Iterable, Sequence

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor

from ramet.session.v1 import session_pb2
from ramet.tree.v1 import tree_pb2

__all__ = ["MAX_MESSAGE_BYTES", "open_channel", "service_config"]

MAX_MESSAGE_BYTES = 32 * 1024 * 1024
"""The largest message either way, as the servers have it."""

_READS = ("Get", "List", "BatchGet", "Diff")

# Four seconds in all: a server that restarts is waited for, one that is not there is told soon enough.
_RETRY = {
    "maxAttempts": 5,
    "initialBackoff": "0.1s",
    "maxBackoff": "3s",
    "backoffMultiplier": 3,
    "retryableStatusCodes": ["UNAVAILABLE"],
}


def open_channel(
    target: str,
    *,
    credentials: grpc.ChannelCredentials | None = None,
    user_agent: str,
    interceptors: Sequence[grpc.aio.ClientInterceptor] = (),
) -> grpc.aio.Channel:
    """Opens a channel of the running event loop; it connects on its first call."""
    options: list[tuple[str, str | int]] = [
        ("grpc.primary_user_agent", user_agent),
        ("grpc.service_config", service_config()),
        # A name server must not replace the retries above: they rest on request ids.
        ("grpc.service_config_disable_resolution", 1),
        ("grpc.enable_retries", 1),
        # A call larger than this buffer is not retried; the default is 256 KiB.
        ("grpc.per_rpc_retry_buffer_size", MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        # A server that comes back is found within the time of a call's retries.
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 1_000),
        # Finds a dead peer under a waiting call. Ramet's servers allow a ping every 10 s.
        ("grpc.keepalive_time_ms", 30_000),
        ("grpc.keepalive_timeout_ms", 10_000),
        ("grpc.keepalive_permit_without_calls", 0),
    ]
    if credentials is None:
        return grpc.aio.insecure_channel(target, options=options, interceptors=interceptors)
    return grpc.aio.secure_channel(target, credentials, options=options, interceptors=interceptors)


def service_config() -> str:
    """Returns gRPC's service config: which methods gRPC itself tries again when a server is UNAVAILABLE."""
    services = (
        session_pb2.DESCRIPTOR.services_by_name["SessionStorage"],
        tree_pb2.DESCRIPTOR.services_by_name["SessionTree"],
    )
    names = [{"service": service.full_name, "method": method.name} for service, method in _retried(services)]
    config = {"loadBalancingConfig": [{"round_robin": {}}], "methodConfig": [{"name": names, "retryPolicy": _RETRY}]}
    return json.dumps(config)


def _retried(services: Iterable[ServiceDescriptor]) -> Iterable[tuple[ServiceDescriptor, MethodDescriptor]]:
    """Finds the methods that are safe to repeat: reads, and writes because they carry a request id."""
    for service in services:
        for method in service.methods:
            read = method.name.startswith(_READS)
            write = "request_id" in method.input_type.fields_by_name
            if not method.client_streaming and (read or write):
                yield service, method
