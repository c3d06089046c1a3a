"""Stubs that make every call within one space, as a client would: the space travels as call metadata."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import grpc

# Generous: it only keeps a hung server from hanging the suite. Nothing is measured by it.
CALL_TIMEOUT_S = 60.0


class _Details(NamedTuple):
    method: str
    timeout: float | None
    metadata: list[tuple[str, str | bytes]] | None
    credentials: grpc.CallCredentials | None
    wait_for_ready: bool | None
    compression: Any


class _WithinSpace(
    grpc.UnaryUnaryClientInterceptor,
    grpc.UnaryStreamClientInterceptor,
    grpc.StreamStreamClientInterceptor,
):
    def __init__(self, space: str | None) -> None:
        self._metadata: list[tuple[str, str | bytes]] = [] if space is None else [("ramet-space", space)]

    def _details(self, details: Any) -> Any:
        return _Details(
            details.method,
            CALL_TIMEOUT_S if details.timeout is None else details.timeout,
            [*(details.metadata or ()), *self._metadata],
            details.credentials,
            details.wait_for_ready,
            details.compression,
        )

    def intercept_unary_unary(self, continuation: Callable[..., Any], client_call_details: Any, request: Any) -> Any:
        return continuation(self._details(client_call_details), request)

    def intercept_unary_stream(self, continuation: Callable[..., Any], client_call_details: Any, request: Any) -> Any:
        return continuation(self._details(client_call_details), request)

    def intercept_stream_stream(
        self, continuation: Callable[..., Any], client_call_details: Any, request_iterator: Any
    ) -> Any:
        return continuation(self._details(client_call_details), request_iterator)


def within(channel: grpc.Channel, space: str | None) -> grpc.Channel:
    """The channel, with every call made in this space; None leaves the metadata out."""
    return grpc.intercept_channel(channel, _WithinSpace(space))
