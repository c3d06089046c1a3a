"""What a call raises when its answer is not a success.

Catch the branch you can act on; ``reason`` tells exactly what happened, and stays the same over versions. An argument
that fits no message raises InvalidArgument as well, before anything is sent.

::

    RametError
    |- NotFound            SESSION_NOT_FOUND, NODE_NOT_FOUND, RECORD_NOT_FOUND, DIAGNOSIS_NOT_FOUND
    |- AlreadyExists       SESSION_EXISTS, NODE_EXISTS, REQUEST_ID_REUSED
    |   `- AlreadyCommitted   ALREADY_COMMITTED
    |- InvalidArgument     INVALID_FIELD, TOO_LARGE, INVALID_PAGE_TOKEN, INVALID_MESSAGE;
    |                      of the orchestrator: UNKNOWN_PROFILE
    |- FailedPrecondition  SESSION_ARCHIVED, NODE_HAS_CHILDREN, MOVE_MAKES_CYCLE, ILLEGAL_REF;
    |                      of the orchestrator: FORK_REFUSED, TURN_IN_PROGRESS, TOO_MANY_ROUNDS, TOO_MANY_TOOL_CALLS
    |- Aborted             STALE_VERSION, STALE_HEAD, WRITE_CONFLICT, TRANSACTION_CONFLICT, TRANSACTION_EXPIRED,
    |                      PRODUCER_REPLACED
    |- OutOfRange          BELOW_TRIM_FLOOR, ABOVE_HEAD
    |- ResourceExhausted   OVERLOADED; without a reason: an answer over gRPC's own limit
    |- Unavailable         DATABASE_UNAVAILABLE, OUTCOME_UNKNOWN, DRAINING, SCHEMA_MISMATCH; without a reason: no server
    |- DeadlineExceeded    DEADLINE_PASSED; without a reason: noticed on this side
    |- Cancelled           CANCELLED; without a reason: on this side
    |- Unimplemented       NOT_SERVED; without a reason: a server that does not know the method
    |- Unauthenticated
    |- PermissionDenied
    `- Internal            INTERNAL
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import grpc
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

__all__ = [
    "Aborted",
    "AlreadyCommitted",
    "AlreadyExists",
    "Cancelled",
    "DeadlineExceeded",
    "FailedPrecondition",
    "FieldViolation",
    "Internal",
    "InvalidArgument",
    "NotFound",
    "OutOfRange",
    "PermissionDenied",
    "RametError",
    "ResourceExhausted",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
]


@dataclass(frozen=True)
class FieldViolation:
    """A field of the request that is at fault."""

    field: str
    """Path of the field, as in ``records[2].content``."""
    description: str
    """What is wrong with it."""


class RametError(Exception):
    """The base of every error that a server's answer, or the lack of one, raises."""

    retry_reasons: ClassVar[frozenset[str] | None] = frozenset()
    """Reasons under which the same call may succeed later; None: under all."""

    def __init__(
        self,
        message: str,
        *,
        code: grpc.StatusCode = grpc.StatusCode.UNKNOWN,
        reason: str = "",
        violations: tuple[FieldViolation, ...] = (),
        metadata: Mapping[str, str] | None = None,
        retry_after_s: float | None = None,
        method: str = "",
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        """What happened, for people."""
        self.code = code
        """The gRPC status code."""
        self.reason = reason
        """What happened, for programs; empty where no Ramet server answered."""
        self.violations = violations
        """The fields at fault; empty where no field is."""
        self.metadata: dict[str, str] = dict(metadata or {})
        """What a program needs to go on, as ``head_seq`` with STALE_HEAD or ``limit`` with TOO_LARGE."""
        self.retry_after_s = retry_after_s
        """Seconds after which the server suggests a retry; None where it does not."""
        self.method = method
        """The RPC, as in ``AppendRecords``."""
        self.request_id = request_id
        """The id that the write carried. A retry with the same id never writes twice; None for reads."""

    @property
    def field(self) -> str | None:
        """Path of the first field at fault; None where no field is."""
        return self.violations[0].field if self.violations else None

    @property
    def retryable(self) -> bool:
        """Whether the very same call, with the same request id, may succeed later. The client has tried a few times."""
        return self.retry_reasons is None or self.reason in self.retry_reasons

    def __str__(self) -> str:
        """Tells method, reason or code, message and fields on one line."""
        where = f"{self.method}: " if self.method else ""
        text = f"{where}{self.reason or self.code.name}: {self.message}"
        others = [violation.field for violation in self.violations if violation.field not in self.message]
        return f"{text} (fields: {', '.join(others)})" if others else text


class NotFound(RametError):
    """The session, node or record does not exist in this space."""


class AlreadyExists(RametError):
    """The id is taken, or the request id was used with another body."""


class InvalidArgument(RametError):
    """The request can never succeed as it is."""


class AlreadyCommitted(AlreadyExists):
    """A transaction with this request id took effect before; this time nothing was done."""

    def __init__(self, request_id: str, transaction_id: str) -> None:
        super().__init__(
            "A transaction with this request_id was committed before.",
            code=grpc.StatusCode.ALREADY_EXISTS,
            reason="ALREADY_COMMITTED",
            method="Transact",
            request_id=request_id,
        )
        self.transaction_id = transaction_id
        """The id of the transaction that took effect."""


class FailedPrecondition(RametError):
    """The state of the session or node forbids it."""


class Aborted(RametError):
    """Something changed meanwhile: read again, then decide. WRITE_CONFLICT alone may simply be tried again."""

    retry_reasons = frozenset({"WRITE_CONFLICT"})


class OutOfRange(RametError):
    """The position lies outside the history that is kept."""


class ResourceExhausted(RametError):
    """The server takes no more calls for now, or a message is over gRPC's limit."""

    retry_reasons = frozenset({"OVERLOADED"})


class Unavailable(RametError):
    """No server answers, or its database does not. A write may have happened: try again with its request id."""

    retry_reasons = None


class DeadlineExceeded(RametError):
    """The answer did not come in time. A write may have happened: try again with its request id."""

    retry_reasons = None


class Cancelled(RametError):
    """The client was closed during the call. Cancelling the awaiting task raises asyncio.CancelledError instead."""


class Unimplemented(RametError):
    """This server does not serve the method."""


class Unauthenticated(RametError):
    """The call carries no valid credentials."""


class PermissionDenied(RametError):
    """The credentials do not allow this."""


class Internal(RametError):
    """A fault of the server; its log tells more."""


_BY_CODE: Mapping[grpc.StatusCode, type[RametError]] = {
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.ALREADY_EXISTS: AlreadyExists,
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgument,
    grpc.StatusCode.FAILED_PRECONDITION: FailedPrecondition,
    grpc.StatusCode.ABORTED: Aborted,
    grpc.StatusCode.OUT_OF_RANGE: OutOfRange,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ResourceExhausted,
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
    grpc.StatusCode.CANCELLED: Cancelled,
    grpc.StatusCode.UNIMPLEMENTED: Unimplemented,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDenied,
    grpc.StatusCode.INTERNAL: Internal,
    grpc.StatusCode.UNKNOWN: Internal,
    grpc.StatusCode.DATA_LOSS: Internal,
}


def from_rpc_error(error: grpc.aio.AioRpcError, *, method: str, request_id: str | None) -> RametError:
    """Turns a failed call into the error of its branch, with all that the server told."""
    reason, metadata, violations, retry_after_s = "", {}, [], None
    for packed in _status(error).details:
        info, bad, retry = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest(), error_details_pb2.RetryInfo()
        if packed.Unpack(info):
            reason, metadata = info.reason, dict(info.metadata)
        elif packed.Unpack(bad):
            violations += [FieldViolation(at.field, at.description) for at in bad.field_violations]
        elif packed.Unpack(retry):
            retry_after_s = retry.retry_delay.ToNanoseconds() / 1e9
    return _BY_CODE.get(error.code(), RametError)(
        error.details() or "The server gave no message.",
        code=error.code(),
        reason=reason,
        violations=tuple(violations),
        metadata=metadata,
        retry_after_s=retry_after_s,
        method=method,
        request_id=request_id,
    )


def too_large(limit: int, *, method: str, request_id: str | None) -> InvalidArgument:
    """Makes the error of a message over gRPC's own limit, as a server would tell of one of its limits."""
    return InvalidArgument(
        f"The request is larger than the {limit} bytes that one message may have.",
        code=grpc.StatusCode.INVALID_ARGUMENT,
        reason="TOO_LARGE",
        metadata={"limit": str(limit), "unit": "bytes"},
        method=method,
        request_id=request_id,
    )


def _status(error: grpc.aio.AioRpcError) -> status_pb2.Status:
    try:
        # The error of an asyncio call has all that the helper reads of a grpc.Call.
        return cast("status_pb2.Status | None", rpc_status.from_call(cast(Any, error))) or status_pb2.Status()
    except ValueError:
        # A proxy between changed the code or the text: its word counts, and the details may not fit it.
        return status_pb2.Status()
