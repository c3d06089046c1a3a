"""What a refusal must look like, whatever the call: one status, one reason, details that a program can read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

# gRPC's own default for all metadata of a reply; beyond it a client sees RESOURCE_EXHAUSTED instead of the error.
METADATA_LIMIT_BYTES = 8 * 1024


@dataclass
class Refusal:
    """What the server told of a refusal. Filled when the block of `refused` is left."""

    code: grpc.StatusCode = grpc.StatusCode.UNKNOWN
    reason: str = ""
    message: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    fields: list[str] = field(default_factory=list)
    retry_after_s: float | None = None


def told_by(error: grpc.RpcError) -> Refusal:
    """Read a refusal, and hold it to what every refusal promises."""
    # What grpc raises is also a grpc.Call; the types do not say so.
    call: Any = error
    status = rpc_status.from_call(call)
    assert status is not None, f"no google.rpc.Status: {error}"
    refusal = Refusal(code=call.code(), message=status.message)
    infos = []
    for detail in status.details:
        info, bad, retry = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest(), error_details_pb2.RetryInfo()
        if detail.Unpack(info):
            infos.append(info)
        elif detail.Unpack(bad):
            refusal.fields += [violation.field for violation in bad.field_violations]
        elif detail.Unpack(retry):
            refusal.retry_after_s = retry.retry_delay.ToTimedelta().total_seconds()
    assert len(infos) == 1, f"not one ErrorInfo: {status}"
    assert infos[0].domain == "ramet"
    refusal.reason, refusal.metadata = infos[0].reason, dict(infos[0].metadata)
    size = sum(len(entry.key) + len(entry.value) + 32 for entry in call.trailing_metadata())
    assert size < METADATA_LIMIT_BYTES, f"{size} bytes of metadata"
    told = refusal.message
    assert not any(word in told for word in ("SELECT", "INSERT", "UPDATE ", "sqlalchemy", "pymysql", "sqlite"))
    return refusal


def reason_of(call: Callable[[], object]) -> str | None:
    """Make a call that may be refused; the reason, or None where it was accepted."""
    try:
        call()
    except grpc.RpcError as error:
        return told_by(error).reason
    return None


@contextmanager
def refused(code: grpc.StatusCode, reason: str, *, names: str | None = None) -> Iterator[Refusal]:
    """Expect that the call in the block is refused with this status and reason.

    Parameters
    ----------
    code
        The status.
    reason
        The reason of the ErrorInfo.
    names
        The path of the field that is at fault, as the BadRequest names it: this path itself, or one that ends in it.
    """
    refusal = Refusal()
    try:
        yield refusal
    except grpc.RpcError as error:
        vars(refusal).update(vars(told_by(error)))
    else:
        raise AssertionError(f"accepted, where {code.name} {reason} was expected")
    assert (refusal.code, refusal.reason) == (code, reason), refusal
    if names is not None:
        ends = (names, f".{names}")
        assert any(path == names or path.endswith(ends) for path in refusal.fields), refusal


def unknown_session() -> AbstractContextManager[Refusal]:
    """Expect that the session does not exist."""
    return refused(grpc.StatusCode.NOT_FOUND, "SESSION_NOT_FOUND")


def unknown_node() -> AbstractContextManager[Refusal]:
    """Expect that the node does not exist."""
    return refused(grpc.StatusCode.NOT_FOUND, "NODE_NOT_FOUND")


def unknown_diagnosis() -> AbstractContextManager[Refusal]:
    """Expect that the diagnosis does not exist."""
    return refused(grpc.StatusCode.NOT_FOUND, "DIAGNOSIS_NOT_FOUND")


def archived() -> AbstractContextManager[Refusal]:
    """Expect that the session takes no writes."""
    return refused(grpc.StatusCode.FAILED_PRECONDITION, "SESSION_ARCHIVED")


def bad_field(path: str) -> AbstractContextManager[Refusal]:
    """Expect that this field is at fault."""
    return refused(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD", names=path)


@contextmanager
def too_large(limit: int, *, names: str | None = None) -> Iterator[Refusal]:
    """Expect that a size limit is exceeded, and that the limit is told."""
    with refused(grpc.StatusCode.INVALID_ARGUMENT, "TOO_LARGE", names=names) as refusal:
        yield refusal
    assert refusal.metadata.get("limit") == str(limit), refusal


def stale_version() -> AbstractContextManager[Refusal]:
    """Expect that an expected version is no longer the current one."""
    return refused(grpc.StatusCode.ABORTED, "STALE_VERSION")


def stale_head() -> AbstractContextManager[Refusal]:
    """Expect that an expected head is no longer the current one."""
    return refused(grpc.StatusCode.ABORTED, "STALE_HEAD")


def reused_request_id() -> AbstractContextManager[Refusal]:
    """Expect that the request_id was used with another body."""
    return refused(grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED")


def bad_page_token() -> AbstractContextManager[Refusal]:
    """Expect that the page token is not one of this list."""
    return refused(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_PAGE_TOKEN")
