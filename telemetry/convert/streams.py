"""Messages of a stream of events."""

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet_server.domain.errors import InvalidField
from ramet_server.domain.ids import check_id
from ramet_server.domain.limits import Limits
from telemetry.convert.events import candidates, refusal_message
from telemetry.rules.event_checks import EventChecks
from telemetry.rules.ingest import Batch, Dropped, Taken


def producer_id(message: pb.StreamEventsRequest) -> str:
    """Reads the Hello that opens a stream."""
    if message.WhichOneof("step") != "hello":
        raise InvalidField("A stream opens with hello.", field="hello")
    return check_id(message.hello.producer_id, "hello.producer_id")


def step(message: pb.StreamEventsRequest, checks: EventChecks) -> Batch | Dropped:
    """Reads a later message of a stream."""
    kind = message.WhichOneof("step")
    if kind == "batch":
        return Batch(message.batch.first_seq, candidates(message.batch.events, checks, message.batch.first_seq))
    if kind == "dropped":
        return Dropped(message.dropped.from_seq, message.dropped.to_seq)
    if kind == "hello":
        raise InvalidField("hello comes first, and only first.", field="hello")
    raise InvalidField("step is missing, or one that this server does not know.", field="step")


def welcome(committed_through_seq: int, limits: Limits) -> pb.StreamEventsResponse:
    """Writes the answer to Hello."""
    return pb.StreamEventsResponse(
        welcome=pb.Welcome(
            committed_through_seq=committed_through_seq,
            credit_bytes=limits.max_inbox_bytes,
            max_batch_bytes=limits.max_batch_bytes,
            max_batch_events=limits.max_batch_events,
        )
    )


def ack(taken: Taken) -> pb.StreamEventsResponse:
    """Writes what is committed and what was refused."""
    return pb.StreamEventsResponse(
        ack=pb.Ack(committed_through_seq=taken.committed_through_seq, refusals=map(refusal_message, taken.refusals))
    )


def gap(taken: Taken) -> pb.StreamEventsResponse:
    """Writes the seq that is expected."""
    return pb.StreamEventsResponse(gap=pb.Gap(expected_seq=taken.committed_through_seq + 1))


def throttle(wait_s: float) -> pb.StreamEventsResponse:
    """Asks to wait."""
    return pb.StreamEventsResponse(throttle=pb.Throttle(wait_ms=max(1, round(wait_s * 1000))))
