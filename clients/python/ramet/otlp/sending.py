"""Sends traces to an OTLP endpoint over gRPC."""

import asyncio
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from ramet.client.channel import open_channel
from ramet.client.errors import from_rpc_error
from ramet.client.loop_thread import LoopThread

__all__ = ["Rejected", "send_trace", "send_trace_blocking"]

_Export = grpc.aio.UnaryUnaryMultiCallable[ExportTraceServiceRequest, ExportTraceServiceResponse]

_PART_BYTES = 1024 * 1024
"""Collectors take 4 MiB at once unless they are told otherwise."""
_FIRST_BACKOFF_S = 0.2
_LONGEST_BACKOFF_S = 5.0
_RETRIED = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.DATA_LOSS,
    }
)
"""What OTLP lets a client try again; ids that are the same each time make it harmless."""


@dataclass(frozen=True)
class Rejected:
    """What the receiver took only in part."""

    spans: int = 0
    """Spans that it refused, for good."""
    message: str = ""
    """Why, in its words."""


async def send_trace(
    endpoint: str,
    trace: bytes,
    *,
    credentials: grpc.ChannelCredentials | None = None,
    headers: Sequence[tuple[str, str]] = (),
    timeout_s: float = 10.0,
) -> Rejected:
    """Sends what :func:`export_diagnosis` returned to a receiver of OTLP over gRPC, as ``127.0.0.1:4317``.

    A large trace goes in parts. ``headers`` go with each call, as a token does; their names are lower case. What may
    pass is tried again until ``timeout_s`` (for the whole) is over. Without ``credentials`` the connection is plain.
    Raises a :class:`ramet.RametError` with the receiver's status where it refuses or does not answer.
    """
    target = endpoint.removeprefix("http://")
    channel = open_channel(target, credentials=credentials, user_agent=f"ramet-python/{version('ramet')}")
    deadline = asyncio.get_running_loop().time() + timeout_s
    spans, messages = 0, []
    async with channel:
        export: _Export = channel.unary_unary(
            "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            request_serializer=ExportTraceServiceRequest.SerializeToString,
            response_deserializer=ExportTraceServiceResponse.FromString,
        )
        for part in _parts(ExportTraceServiceRequest.FromString(trace)):
            refused = await _send(export, part, headers, deadline)
            spans += refused.rejected_spans
            if refused.error_message:
                messages.append(refused.error_message)
    return Rejected(spans, "; ".join(dict.fromkeys(messages)))


def send_trace_blocking(
    endpoint: str,
    trace: bytes,
    *,
    credentials: grpc.ChannelCredentials | None = None,
    headers: Sequence[tuple[str, str]] = (),
    timeout_s: float = 10.0,
) -> Rejected:
    """Sends a trace and waits for it; else as :func:`send_trace`. It may be called from any thread."""
    loop_thread = LoopThread.acquire()
    try:
        return loop_thread.run(
            send_trace(endpoint, trace, credentials=credentials, headers=headers, timeout_s=timeout_s)
        )
    finally:
        loop_thread.release()


async def _send(
    export: _Export, part: ExportTraceServiceRequest, headers: Sequence[tuple[str, str]], deadline: float
) -> ExportTracePartialSuccess:
    clock, pause = asyncio.get_running_loop().time, _FIRST_BACKOFF_S
    while True:
        try:
            reply = await export(part, metadata=tuple(headers), timeout=max(0.0, deadline - clock()))
        except grpc.aio.AioRpcError as failure:
            error = from_rpc_error(failure, method="Export", request_id=None)
            # A receiver that has no room says by RetryInfo that it may be asked again.
            wait = error.retry_after_s or pause * random.uniform(0.5, 1.0)  # noqa: S311 - spreads callers, guards nothing
            hopeful = failure.code() in _RETRIED or error.retry_after_s is not None
            if not hopeful or clock() + wait >= deadline:
                raise error from failure
            await asyncio.sleep(wait)
            pause = min(2 * pause, _LONGEST_BACKOFF_S)
        else:
            return reply.partial_success


def _parts(request: ExportTraceServiceRequest) -> Iterator[ExportTraceServiceRequest]:
    for of_resource in request.resource_spans:
        for of_scope in of_resource.scope_spans:
            for spans in _chunks(of_scope.spans):
                scope = ScopeSpans(scope=of_scope.scope, spans=spans, schema_url=of_scope.schema_url)
                resource = ResourceSpans(
                    resource=of_resource.resource, scope_spans=[scope], schema_url=of_resource.schema_url
                )
                yield ExportTraceServiceRequest(resource_spans=[resource])


def _chunks(spans: Sequence[Span]) -> Iterator[list[Span]]:
    chunk: list[Span] = []
    size = 0
    for span in spans:
        if chunk and size + span.ByteSize() > _PART_BYTES:
            yield chunk
            chunk, size = [], 0
        chunk.append(span)
        size += span.ByteSize()
    if chunk:
        yield chunk
