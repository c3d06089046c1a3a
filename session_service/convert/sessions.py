"""Messages about metadata of sessions."""

from datetime import datetime
from typing import Literal

from ramet.session.v1 import session_pb2 as pb
from ramet_server.domain.errors import InvalidField
from session_service.convert.requests import known, moment, refuse_unknown_fields, write_moment
from session_service.rules.metadata import Metadata
from session_service.rules.session_queries import SessionFilter, SessionOrder
from session_service.rules.sessions import SessionBatch, SessionList, SessionPage, SessionPut
from session_service.rules.values import Session, Status

_STATUSES: dict[pb.SessionStatus.ValueType, Status | None] = {
    pb.SESSION_STATUS_UNSPECIFIED: None,
    pb.SESSION_STATUS_ACTIVE: Status.ACTIVE,
    pb.SESSION_STATUS_ARCHIVED: Status.ARCHIVED,
}
_STATUS_NUMBERS = {status: number for number, status in _STATUSES.items()}
_ORDERS = {
    pb.SESSION_ORDER_UNSPECIFIED: SessionOrder.ID,
    pb.SESSION_ORDER_ID: SessionOrder.ID,
    pb.SESSION_ORDER_CREATED_AT: SessionOrder.CREATED_AT,
    pb.SESSION_ORDER_LAST_ACTIVE_AT: SessionOrder.LAST_ACTIVE_AT,
}
_PATHS = frozenset({"label", "tags", "metadata_json"})


def session_message(session: Session) -> pb.Session:
    """Writes a session."""
    message = pb.Session()
    write_session(message, session)
    return message


def write_session(message: pb.Session, session: Session) -> None:
    """Writes a session into a message that is part of another: made apart and copied it took an append 17 us, not 8."""
    message.id = session.session_id
    message.label = session.label
    message.status = _STATUS_NUMBERS[session.status]
    message.turn_count = session.turn_count
    message.tags.extend(session.tags)
    message.metadata_json = session.metadata_json or ""
    message.head_seq = session.head_seq
    message.floor_seq = session.floor_seq
    message.version = session.version
    write_moment(message.created_at, session.created_at)
    write_moment(message.updated_at, session.updated_at)
    write_moment(message.last_active_at, session.last_active_at)


def batch_message(batch: SessionBatch) -> pb.BatchGetSessionsResponse:
    """Writes some of many sessions."""
    return pb.BatchGetSessionsResponse(
        sessions=map(session_message, batch.sessions), missing_session_ids=batch.missing_session_ids
    )


def page_message(page: SessionPage) -> pb.ListSessionsResponse:
    """Writes a page of a list."""
    return pb.ListSessionsResponse(sessions=map(session_message, page.sessions), next_page_token=page.next_page_token)


def session_list(request: pb.ListSessionsRequest) -> SessionList:
    """Reads which sessions are wanted; what this server does not know is refused."""
    admits = request.filter
    refuse_unknown_fields(admits, "filter")
    return SessionList(
        admits=SessionFilter(
            status=known(_STATUSES, admits.status, "filter.status"),
            tags=tuple(admits.tags),
            label_prefix=admits.label_prefix,
            created_from=_time(admits, "created_from"),
            created_before=_time(admits, "created_before"),
            last_active_from=_time(admits, "last_active_from"),
            last_active_before=_time(admits, "last_active_before"),
        ),
        order=known(_ORDERS, request.order, "order"),
        descending=request.descending,
        page_size=request.page_size,
        page_token=request.page_token,
    )


def session_put(request: pb.PutSessionRequest) -> SessionPut:
    """Reads what of a session is to be written."""
    return SessionPut(
        session_id=request.session.id,
        metadata=_given(request),
        expected_version=request.expected_version if request.HasField("expected_version") else None,
        system_prompt=request.system_prompt if request.HasField("system_prompt") else None,
    )


def _given(request: pb.PutSessionRequest) -> Metadata:
    session = request.session
    # An empty mask is the same as none: some languages cannot tell the two apart.
    paths = set(request.update_mask.paths)
    if not paths:
        return Metadata(session.label or None, tuple(session.tags) or None, session.metadata_json or None)
    if "*" in paths:
        paths = (paths - {"*"}) | _PATHS
    if paths - _PATHS:
        raise InvalidField("update_mask may name label, tags, metadata_json, or * alone.", field="update_mask")
    return Metadata(
        label=session.label if "label" in paths else None,
        tags=tuple(session.tags) if "tags" in paths else None,
        metadata_json=session.metadata_json if "metadata_json" in paths else None,
    )


_TimeField = Literal["created_from", "created_before", "last_active_from", "last_active_before"]


def _time(admits: pb.SessionFilter, name: _TimeField) -> datetime | None:
    return moment(getattr(admits, name), f"filter.{name}") if admits.HasField(name) else None
