"""OpenTelemetry out: a diagnosis as a trace, in OTLP, by the semantic conventions for generative AI.

Needs the extra ``otlp`` (``pip install "ramet[otlp]"``)::

    async with ramet.connect("127.0.0.1:50051") as client:
        trace = await export_diagnosis(client, "diagnosis-1")
    await send_trace("127.0.0.1:4317", trace)

Without asyncio: ``export_diagnosis_blocking`` with a blocking client, and ``send_trace_blocking``.

One trace per diagnosis. Its spans, by operation:

- ``invoke_agent``: the diagnosis, named after its flow, and below it one for each run of an agent. A run is the steps
  of one agent below one parent step; a sub-agent's run lies in the run of that parent step, and is linked to it.
- ``chat``: a step, in the run of its agent, with its tokens. They are told here alone, so that summing counts once.
- ``execute_tool``: a tool call, in the run of the step that made it, and linked to that step.
- ``retrieval``: within the tool call, what a knowledge lookup found.

Self-evaluation and feedback are events ``gen_ai.evaluation.result`` of the diagnosis. What is unknown is left out. A
span that has not ended ends with the last thing known within it; ``ramet.status`` tells how it stands. Ids follow from
space, session id and keys, so a trace that is sent again is the same trace. Attributes without an agreed name begin
with ``ramet.``. Questions, messages, arguments and results are in it only on demand (``content=True``).
"""

try:
    import opentelemetry.proto.collector.trace.v1.trace_service_pb2  # noqa: F401 - only tried
except ImportError as error:
    raise ImportError('ramet.otlp needs the extra "otlp": pip install "ramet[otlp]"') from error

from ramet.otlp.exporting import export_diagnosis, export_diagnosis_blocking
from ramet.otlp.ids import span_id_of, trace_id_of
from ramet.otlp.sending import Rejected, send_trace, send_trace_blocking

__all__ = [
    "Rejected",
    "export_diagnosis",
    "export_diagnosis_blocking",
    "send_trace",
    "send_trace_blocking",
    "span_id_of",
    "trace_id_of",
]
