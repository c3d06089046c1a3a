"""Messages of transactions."""

from typing import Protocol, TypeVar

from google.protobuf.empty_pb2 import Empty

from ramet.session.v1 import session_pb2 as pb
from ramet_server.domain.errors import InvalidField
from ramet_server.domain.limits import Limits
from session_service.convert import records, sessions, slots
from session_service.rules import transaction_steps as steps
from session_service.rules.appending import Appended
from session_service.rules.records import RecordPage
from session_service.rules.transaction_steps import Answer, Rewound, Step
from session_service.rules.trimming import Trimmed
from session_service.rules.values import Session, Slot, SlotName


class _Mutating(Protocol):
    request_id: str


M = TypeVar("M", bound=_Mutating)


def kind_of(request: pb.TransactRequest) -> str:
    """Returns the name of the request's step; one that is missing, or not known to this server, is refused."""
    kind = request.WhichOneof("step")
    if kind is None:
        raise InvalidField("step is missing, or one that this server does not know.", field="step")
    return kind


def read_step(request: pb.TransactRequest, space: str, limits: Limits) -> Step:
    """Reads a step."""
    match request.WhichOneof("step"):
        case "get_session":
            return steps.get_session(request.get_session.session_id)
        case "put_session":
            return steps.put_session(sessions.session_put(_alone(request.put_session)), limits)
        case "append_records":
            return steps.append_records(records.append(_alone(request.append_records)), limits)
        case "list_records":
            return steps.list_records(records.record_query(request.list_records), space, limits)
        case "trim_records":
            return steps.trim_records(records.trim(_alone(request.trim_records)))
        case "truncate_records":
            return steps.truncate_records(records.truncate(_alone(request.truncate_records)))
        case _:
            return _slot_step(request, limits)


def _slot_step(request: pb.TransactRequest, limits: Limits) -> Step:
    match request.WhichOneof("step"):
        case "get_system_prompt":
            return steps.get_slot(request.get_system_prompt.session_id, SlotName.SYSTEM_PROMPT)
        case "put_system_prompt":
            return steps.put_slot(slots.slot_put(_alone(request.put_system_prompt), SlotName.SYSTEM_PROMPT), limits)
        case "get_insight":
            return steps.get_slot(request.get_insight.session_id, SlotName.INSIGHT)
        case "put_insight":
            return steps.put_insight(slots.slot_put(_alone(request.put_insight), SlotName.INSIGHT), limits)
        case "clear_insight":
            return steps.put_slot(slots.slot_clear(_alone(request.clear_insight)), limits)
        case "get_memory":
            return steps.get_slot(request.get_memory.session_id, SlotName.MEMORY)
        case "put_memory":
            return steps.put_slot(slots.slot_put(_alone(request.put_memory), SlotName.MEMORY), limits)
        case other:
            raise InvalidField(f"{other} must come once: begin first, commit last.", field="step")


def answer_message(answer: Answer | None) -> pb.TransactResponse:
    """Writes what a step answers; None where a read found no session."""
    match answer:
        case None:
            return pb.TransactResponse(not_found=Empty())
        case Session():
            return pb.TransactResponse(session=sessions.session_message(answer))
        case Slot():
            return pb.TransactResponse(slot=slots.slot_message(answer))
        case Appended():
            return pb.TransactResponse(append_records=records.appended_message(answer))
        case RecordPage():
            return pb.TransactResponse(list_records=records.page_message(answer))
        case Trimmed():
            return pb.TransactResponse(trim_records=records.trimmed_message(answer))
        case Rewound(head_seq):
            return pb.TransactResponse(truncate_records=pb.TruncateRecordsResponse(head_seq=head_seq))


def _alone(request: M) -> M:
    """Returns a step's request, which may bear no request_id: that of begin stands for all."""
    if request.request_id:
        raise InvalidField("A step bears no request_id of its own: that of begin stands for all.", field="request_id")
    return request
