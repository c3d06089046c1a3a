"""Traces as tests look at them: by the protocol's own classes, in few words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

import ramet
from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet.telemetry.v1.telemetry_pb2_grpc import TelemetryStub


async def tell(address: str, client: ramet.Client, *events: pb.Event) -> None:
    """Takes events to the server."""
    async with grpc.aio.insecure_channel(address) as channel:
        reply = await TelemetryStub(channel).AppendEvents(
            pb.AppendEventsRequest(events=events), metadata=(("ramet-space", client.space),)
        )
    assert list(reply.refusals) == []


def values(attributes: Iterable[KeyValue]) -> dict[str, str | int | float | bool]:
    """Attributes by name, none twice."""
    pairs = [(each.key, _plain(each.value)) for each in attributes]
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def _plain(value: AnyValue) -> str | int | float | bool:
    kind = value.WhichOneof("value")
    assert kind is not None
    plain: str | int | float | bool = getattr(value, kind)
    return plain


@dataclass(frozen=True)
class Trace:
    """Spans by name, where a name is told once."""

    spans: list[Span]

    @classmethod
    def read(cls, trace: bytes) -> Trace:
        """Reads the bytes of a request of one resource and one scope."""
        request = ExportTraceServiceRequest.FromString(trace)
        (resource,) = request.resource_spans
        (scope,) = resource.scope_spans
        return cls(list(scope.spans))

    def __getitem__(self, name: str) -> Span:
        """The one span of that name."""
        (span,) = (span for span in self.spans if span.name == name)
        return span

    def step(self, key: str) -> Span:
        """The span of a step."""
        (span,) = (
            span
            for span in self.spans
            if span.name.startswith("chat") and values(span.attributes)["ramet.step_key"] == key
        )
        return span
