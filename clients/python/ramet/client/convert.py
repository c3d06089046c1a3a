"""Messages of ramet.session.v1 to values, and back."""

from datetime import UTC, datetime

from google.protobuf.empty_pb2 import Empty
from google.protobuf.timestamp_pb2 import Timestamp

from ramet.client import values
from ramet.client.arguments import build, choice, each, of_kind, refused
from ramet.client.values import Role, SessionOrder, SessionStatus, SlotName
from ramet.session.v1 import session_pb2 as pb

_ROLES = {
    Role.SYSTEM: pb.ROLE_SYSTEM,
    Role.USER: pb.ROLE_USER,
    Role.ASSISTANT: pb.ROLE_ASSISTANT,
    Role.TOOL: pb.ROLE_TOOL,
}
_ROLES_BACK = {number: role for role, number in _ROLES.items()}
_STATUSES = {
    SessionStatus.ACTIVE: pb.SESSION_STATUS_ACTIVE,
    SessionStatus.ARCHIVED: pb.SESSION_STATUS_ARCHIVED,
}
_STATUSES_BACK = {number: status for status, number in _STATUSES.items()}
_ORDERS = {
    SessionOrder.ID: pb.SESSION_ORDER_ID,
    SessionOrder.CREATED_AT: pb.SESSION_ORDER_CREATED_AT,
    SessionOrder.LAST_ACTIVE_AT: pb.SESSION_ORDER_LAST_ACTIVE_AT,
}
_SLOTS = {
    SlotName.SYSTEM_PROMPT: pb.SLOT_NAME_SYSTEM_PROMPT,
    SlotName.INSIGHT: pb.SLOT_NAME_INSIGHT,
    SlotName.MEMORY: pb.SLOT_NAME_MEMORY,
}


def time_out(value: datetime | None, field: str) -> Timestamp | None:
    """Makes a timestamp; a time without its zone is refused rather than guessed."""
    if value is None:
        return None
    if of_kind(datetime, value, field).utcoffset() is None:
        raise refused(field, f"{value!r} needs a time zone, as in datetime.now(UTC)")
    stamp = Timestamp()
    stamp.FromDatetime(value)
    return stamp


def time_in(stamp: Timestamp) -> datetime:
    """Reads a timestamp that is there."""
    return stamp.ToDatetime(tzinfo=UTC)


def role_out(role: Role, field: str = "") -> pb.Role.ValueType:
    """Makes the number of a role; a plain ``"user"`` serves as well."""
    return _ROLES[choice(Role, role, field)]


def order_out(order: SessionOrder) -> pb.SessionOrder.ValueType:
    """Makes the number of an order."""
    return _ORDERS[choice(SessionOrder, order, "order")]


def slot_name_out(name: SlotName) -> pb.SlotName.ValueType:
    """Makes the number of a slot."""
    return _SLOTS[choice(SlotName, name, "")]


def session_in(message: pb.Session) -> values.Session:
    """Reads a session."""
    return values.Session(
        id=message.id,
        label=message.label,
        status=_STATUSES_BACK[message.status],
        turn_count=message.turn_count,
        tags=tuple(message.tags),
        metadata_json=message.metadata_json or None,
        head_seq=message.head_seq,
        floor_seq=message.floor_seq,
        version=message.version,
        created_at=time_in(message.created_at),
        updated_at=time_in(message.updated_at),
        last_active_at=time_in(message.last_active_at),
    )


def record_out(record: values.Record) -> pb.Record:
    """Makes a record to append; what only the server gives stays behind."""
    of_kind(values.Record, record, "")
    return build(
        pb.Record,
        role=role_out(record.role, "role"),
        content=record.content,
        parts_json=record.parts_json or "",
        tool_calls=each(_tool_call_out, record.tool_calls, "tool_calls"),
        tool_call_id=record.tool_call_id or "",
        name=record.name or "",
        client_time=time_out(record.client_time, "client_time"),
        metadata_json=record.metadata_json or "",
    )


def _tool_call_out(call: values.ToolCall) -> pb.ToolCall:
    of_kind(values.ToolCall, call, "")
    return build(pb.ToolCall, id=call.id, name=call.name, arguments_json=call.arguments_json or "")


def news_in(message: pb.WatchRecordsResponse) -> values.RecordNews:
    """Reads what a watch tells."""
    return values.RecordNews(
        records=tuple(map(record_in, message.records)),
        through_seq=message.through_seq,
        rewound_to_seq=message.rewound_to_seq if message.HasField("rewound_to_seq") else None,
    )


def record_in(message: pb.Record) -> values.Record:
    """Reads a record."""
    return values.Record(
        role=_ROLES_BACK[message.role],
        content=message.content,
        tool_calls=tuple(
            values.ToolCall(call.id, call.name, call.arguments_json or None) for call in message.tool_calls
        ),
        tool_call_id=message.tool_call_id or None,
        name=message.name or None,
        parts_json=message.parts_json or None,
        metadata_json=message.metadata_json or None,
        client_time=time_in(message.client_time) if message.HasField("client_time") else None,
        seq=message.seq,
        created_at=time_in(message.created_at) if message.HasField("created_at") else None,
        erased_at=time_in(message.erased_at) if message.HasField("erased_at") else None,
    )


def slot_in(message: pb.Slot) -> values.Slot:
    """Reads a slot."""
    return values.Slot(
        content=message.content if message.HasField("content") else None,
        version=message.version,
        updated_at=time_in(message.updated_at) if message.HasField("updated_at") else None,
    )


def slots_in(message: pb.SessionSlots) -> values.SessionSlots:
    """Reads the slots of one session."""
    return values.SessionSlots(
        session_id=message.session_id,
        system_prompt=slot_in(message.system_prompt) if message.HasField("system_prompt") else None,
        insight=slot_in(message.insight) if message.HasField("insight") else None,
        memory=slot_in(message.memory) if message.HasField("memory") else None,
    )


def filter_out(chosen: values.SessionFilter) -> pb.SessionFilter:
    """Makes a filter."""
    of_kind(values.SessionFilter, chosen, "where")
    status = choice(SessionStatus, chosen.status, "status") if chosen.status is not None else None
    return build(
        pb.SessionFilter,
        status=pb.SESSION_STATUS_UNSPECIFIED if status is None else _STATUSES[status],
        tags=chosen.tags,
        label_prefix=chosen.label_prefix,
        created_from=time_out(chosen.created_from, "created_from"),
        created_before=time_out(chosen.created_before, "created_before"),
        last_active_from=time_out(chosen.last_active_from, "last_active_from"),
        last_active_before=time_out(chosen.last_active_before, "last_active_before"),
    )


def history_out(history: values.History, request: pb.ForkSessionRequest) -> None:
    """Sets what the fork inherits."""
    match of_kind(values.History, history, "history").kind:
        case "none":
            request.none.CopyFrom(Empty())
        case "all":
            request.all.CopyFrom(Empty())
        case "up_to_seq":
            request.MergeFrom(build(pb.ForkSessionRequest, up_to_seq=history.number))
        case "last":
            request.MergeFrom(build(pb.ForkSessionRequest, last=history.number))
        case "records":
            request.records.CopyFrom(build(pb.RecordList, records=each(record_out, history.records, "records")))
        case other:
            raise refused("history", f"there is no kind {other!r}; use the constructors of History")


def context_in(message: pb.GetContextResponse) -> values.Context:
    """Reads what one send needs."""
    return values.Context(
        session=session_in(message.session),
        system_prompt=slot_in(message.system_prompt),
        insight=slot_in(message.insight),
        records=tuple(record_in(record) for record in message.records),
        incomplete_records=message.incomplete_records,
        older_left_out=message.older_left_out,
    )


def diff_in(message: pb.DiffSessionsResponse) -> values.Diff:
    """Reads a comparison."""
    return values.Diff(message.common_through_seq, _side_in(message.left), _side_in(message.right))


def _side_in(message: pb.DiffSide) -> values.DiffSide:
    return values.DiffSide(message.first_own_seq, message.head_seq, message.floor_seq)


def server_info_in(message: pb.GetServerInfoResponse) -> values.SessionServerInfo:
    """Reads version and limits."""
    limits = message.limits
    return values.SessionServerInfo(
        version=message.version,
        schema_revision=message.schema_revision,
        limits=values.SessionLimits(
            max_record_bytes=limits.max_record_bytes,
            max_append_bytes=limits.max_append_bytes,
            max_append_records=limits.max_append_records,
            max_slot_bytes=limits.max_slot_bytes,
            max_metadata_bytes=limits.max_metadata_bytes,
            max_page_size=limits.max_page_size,
            max_page_bytes=limits.max_page_bytes,
            request_id_hours=limits.request_id_hours,
            max_transaction_operations=limits.max_transaction_operations,
            max_transaction_bytes=limits.max_transaction_bytes,
            max_transaction_seconds=limits.max_transaction_seconds,
        ),
    )
