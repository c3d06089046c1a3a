"""A trace arrives at a receiver of OTLP over gRPC, or the sender says why not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
import pytest_asyncio
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as service_grpc

import ramet
from ramet.otlp import (
    Rejected,
    export_diagnosis,
    export_diagnosis_blocking,
    send_trace,
    send_trace_blocking,
)
from tests.otlp.test_export import supervised
from tests.otlp.traces import tell
from tests.telemetry import events as e


class Receiver(service_grpc.TraceServiceServicer):
    """Takes traces in, after as many failures as it is told to have."""

    def __init__(self) -> None:
        self.address = ""
        self.requests: list[service.ExportTraceServiceRequest] = []
        self.metadata: list[dict[str, Any]] = []
        self.failures: list[grpc.StatusCode] = []
        self.retry_after: float | None = None
        self.partial = service.ExportTracePartialSuccess()

    async def Export(
        self, request: service.ExportTraceServiceRequest, context: Any
    ) -> service.ExportTraceServiceResponse:
        """Takes one part."""
        self.metadata.append(dict(context.invocation_metadata()))
        if self.failures:
            code = self.failures.pop(0)
            status = status_pb2.Status(code=code.value[0], message="not now")
            if self.retry_after is not None:
                delay = Duration()
                delay.FromNanoseconds(round(self.retry_after * 1e9))
                status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))
            context.set_trailing_metadata(rpc_status.to_status(status).trailing_metadata)
            await context.abort(code, "not now")
        self.requests.append(request)
        return service.ExportTraceServiceResponse(partial_success=self.partial)


@pytest_asyncio.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver that listens."""
    receiver, server = Receiver(), grpc.aio.server()
    # The protocol's package tells no types of its services.
    service_grpc.add_TraceServiceServicer_to_server(receiver, server)  # type: ignore[no-untyped-call]
    receiver.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    try:
        yield receiver
    finally:
        await server.stop(None)


async def test_what_was_exported_arrives(address: str, client: ramet.Client, receiver: Receiver) -> None:
    await tell(address, client, *supervised())
    trace = await export_diagnosis(client, "d")
    assert await send_trace(f"http://{receiver.address}", trace, headers=[("authorization", "Bearer t")]) == Rejected()
    (request,) = receiver.requests
    assert request == service.ExportTraceServiceRequest.FromString(trace)
    assert receiver.metadata[0]["authorization"] == "Bearer t"
    assert receiver.metadata[0]["user-agent"].startswith("ramet-python/")


async def test_the_blocking_twins_export_and_send_the_same(
    address: str, client: ramet.Client, receiver: Receiver
) -> None:
    await tell(address, client, *supervised())

    def without_asyncio() -> bytes:
        with ramet.connect_blocking(address, space=client.space) as blocking_client:
            trace = export_diagnosis_blocking(blocking_client, "d", content=True)
        assert send_trace_blocking(receiver.address, trace, headers=[("authorization", "Bearer t")]) == Rejected()
        return trace

    trace = await asyncio.to_thread(without_asyncio)
    assert trace == await export_diagnosis(client, "d", content=True)
    assert receiver.requests == [service.ExportTraceServiceRequest.FromString(trace)]
    assert receiver.metadata[0]["authorization"] == "Bearer t"


async def test_a_large_trace_goes_in_parts_that_any_receiver_takes(
    address: str, client: ramet.Client, receiver: Receiver
) -> None:
    told = [
        e.step_completed(f"s{n}", f"s{n}", n, step_index=n, model_output_json=f'{{"text": "{n % 10 * 60_000}"}}')
        for n in range(3)
    ]
    told += [e.step_completed(f"b{n}", f"b{n}", n, step_index=n, thought=str(n % 10) * 60_000) for n in range(3, 60)]
    for batch in e.split(told, [30]):
        await tell(address, client, *batch)
    trace = await export_diagnosis(client, "d", content=True)
    assert len(trace) > 3_000_000
    await send_trace(receiver.address, trace)
    assert len(receiver.requests) > 2
    assert all(request.ByteSize() < 1_200_000 for request in receiver.requests)
    whole = service.ExportTraceServiceRequest.FromString(trace)
    arrived = [span for request in receiver.requests for span in request.resource_spans[0].scope_spans[0].spans]
    assert arrived == list(whole.resource_spans[0].scope_spans[0].spans)
    assert {request.resource_spans[0].resource.attributes[0].value.string_value for request in receiver.requests} == {
        "ramet"
    }


async def test_what_may_pass_is_tried_again(address: str, client: ramet.Client, receiver: Receiver) -> None:
    await tell(address, client, e.started("s"))
    receiver.failures = [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED]
    await send_trace(receiver.address, await export_diagnosis(client, "d"))
    assert (len(receiver.metadata), len(receiver.requests)) == (3, 1)


async def test_a_receiver_without_room_is_asked_again_if_it_says_when(
    address: str, client: ramet.Client, receiver: Receiver
) -> None:
    await tell(address, client, e.started("s"))
    trace = await export_diagnosis(client, "d")
    receiver.failures, receiver.retry_after = [grpc.StatusCode.RESOURCE_EXHAUSTED], 0.01
    await send_trace(receiver.address, trace)
    assert len(receiver.requests) == 1
    receiver.failures, receiver.retry_after = [grpc.StatusCode.RESOURCE_EXHAUSTED], None
    with pytest.raises(ramet.ResourceExhausted):
        await send_trace(receiver.address, trace)


async def test_a_refusal_is_raised_at_once(address: str, client: ramet.Client, receiver: Receiver) -> None:
    await tell(address, client, e.started("s"))
    receiver.failures = [grpc.StatusCode.UNAUTHENTICATED]
    with pytest.raises(ramet.Unauthenticated):
        await send_trace(receiver.address, await export_diagnosis(client, "d"))
    assert len(receiver.metadata) == 1


async def test_spans_that_were_not_taken_are_told(address: str, client: ramet.Client, receiver: Receiver) -> None:
    await tell(address, client, e.started("s"))
    receiver.partial = service.ExportTracePartialSuccess(rejected_spans=1, error_message="too old")
    assert await send_trace(receiver.address, await export_diagnosis(client, "d")) == Rejected(1, "too old")


async def test_nobody_there_is_unavailable_in_time(address: str, client: ramet.Client) -> None:
    await tell(address, client, e.started("s"))
    with pytest.raises((ramet.Unavailable, ramet.DeadlineExceeded)):
        await send_trace("127.0.0.1:1", await export_diagnosis(client, "d"), timeout_s=0.5)
