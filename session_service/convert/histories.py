"""Messages about whole histories: contexts, forks and diffs; and the server's limits."""

from ramet.session.v1 import session_pb2 as pb
from ramet_server.domain.limits import Limits
from session_service.convert.records import new_records, write_records
from session_service.convert.sessions import session_message
from session_service.convert.slots import slot_message
from session_service.rules.contexts import Budget, Context
from session_service.rules.diffs import Diff, Side
from session_service.rules.forks import All, Fork, Forked, Given, Last, UpTo
from session_service.rules.metadata import Metadata


def budget(request: pb.GetContextRequest) -> Budget:
    """Reads how much history is wanted."""
    return Budget(
        max_records=request.max_records if request.HasField("max_records") else None,
        max_characters=request.max_characters if request.HasField("max_characters") else None,
    )


def context_message(context: Context) -> pb.GetContextResponse:
    """Writes what a send needs."""
    message = pb.GetContextResponse(
        session=session_message(context.session),
        system_prompt=slot_message(context.system_prompt),
        insight=slot_message(context.insight),
        incomplete_records=context.incomplete_records,
        older_left_out=context.older_left_out,
    )
    write_records(message.records, context.records)
    return message


def fork(request: pb.ForkSessionRequest) -> Fork:
    """Reads what a new session is to be."""
    return Fork(
        source_session_id=request.source_session_id,
        session_id=request.session_id,
        metadata=Metadata(request.label, tuple(request.tags), request.metadata_json),
        history=_history(request),
        opening_prompt=request.opening_prompt,
        system_prompt=request.system_prompt if request.HasField("system_prompt") else None,
    )


def _history(request: pb.ForkSessionRequest) -> All | UpTo | Last | Given:
    match request.WhichOneof("history"):
        case "all":
            return All()
        case "up_to_seq":
            return UpTo(request.up_to_seq)
        case "last":
            return Last(request.last)
        case "records":
            return Given(new_records(request.records.records, "records.records"))
        case _:
            return Given()


def forked_message(forked: Forked) -> pb.ForkSessionResponse:
    """Writes the new session and what it inherited."""
    return pb.ForkSessionResponse(
        session=session_message(forked.session),
        inherited_through_seq=forked.inherited_through_seq,
        incomplete_records=forked.incomplete_records,
    )


def diff_message(diff: Diff) -> pb.DiffSessionsResponse:
    """Writes how two sessions compare."""
    return pb.DiffSessionsResponse(
        common_through_seq=diff.common_through_seq, left=_side(diff.left), right=_side(diff.right)
    )


def _side(side: Side) -> pb.DiffSide:
    return pb.DiffSide(first_own_seq=side.first_own_seq, head_seq=side.head_seq, floor_seq=side.floor_seq)


def limits_message(limits: Limits) -> pb.Limits:
    """Writes the limits that hold for sessions."""
    return pb.Limits(
        max_record_bytes=limits.max_record_bytes,
        max_append_bytes=limits.max_append_bytes,
        max_append_records=limits.max_append_records,
        max_slot_bytes=limits.max_slot_bytes,
        max_metadata_bytes=limits.max_json_bytes,
        max_page_size=limits.max_page_size,
        max_page_bytes=limits.max_page_bytes,
        request_id_hours=limits.request_id_hours,
        max_transaction_operations=limits.max_transaction_operations,
        max_transaction_bytes=limits.max_transaction_bytes,
        max_transaction_seconds=limits.max_transaction_seconds,
    )
