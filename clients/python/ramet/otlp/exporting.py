"""A diagnosis as an OTLP request."""

from importlib.metadata import version

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans

from ramet.client import BlockingClient, Client
from ramet.otlp.reading import read_chain
from ramet.otlp.spans import attributes, spans_of

__all__ = ["export_diagnosis", "export_diagnosis_blocking"]

_SCHEMA = "https://opentelemetry.io/schemas/1.41.0"
"""The conventions whose names the spans bear."""


async def export_diagnosis(
    client: Client, session_id: str, *, service_name: str = "ramet", content: bool = False
) -> bytes:
    """Reads a diagnosis and returns it as a serialized ``ExportTraceServiceRequest``.

    ``service_name`` is what the trace is filed under, ``service.name``. With ``content`` the question, the summaries of
    what models were told and said, and the arguments and results of tools are in it too. Raises :class:`ramet.NotFound`
    where there is no such diagnosis.
    """
    chain = await read_chain(client, session_id)
    spans = ScopeSpans(
        scope=InstrumentationScope(name="ramet", version=version("ramet")),
        spans=spans_of(chain, with_content=content),
        schema_url=_SCHEMA,
    )
    resource = Resource(attributes=attributes({"service.name": service_name}))
    request = ExportTraceServiceRequest(resource_spans=[ResourceSpans(resource=resource, scope_spans=[spans])])
    # The same diagnosis is the same bytes.
    return request.SerializeToString(deterministic=True)


def export_diagnosis_blocking(
    client: BlockingClient, session_id: str, *, service_name: str = "ramet", content: bool = False
) -> bytes:
    """Reads a diagnosis by a blocking client; else as :func:`export_diagnosis`."""
    work = export_diagnosis(client.asyncio_client, session_id, service_name=service_name, content=content)
    return client.loop_thread.run(work)
