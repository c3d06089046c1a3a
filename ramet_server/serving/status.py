"""The one place that turns an error of the product into a gRPC status.

The status carries google.rpc details: ErrorInfo always, BadRequest where a field is at fault,
RetryInfo where a time is known. All of it stays well under the 8 KB that metadata may have: over
that limit gRPC itself would answer RESOURCE_EXHAUSTED in place of the real code.
"""

from dataclasses import dataclass
from urllib.parse import quote

from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from grpc import StatusCode

from ramet_server.domain import errors

ERROR_DOMAIN = "ramet"
"""The ErrorInfo domain of every reason."""

DETAILS_KEY = "grpc-status-details-bin"
"""Trailing metadata under which gRPC clients look for the details."""

CALL_ID_KEY = "x-request-id"
"""Metadata in which a client may name its call, and in which the answer tells the name."""

PUSHBACK_KEY = "grpc-retry-pushback-ms"
"""Trailing metadata by which gRPC's own retries learn when to come again."""

_CODES: tuple[tuple[type[errors.RametError], StatusCode], ...] = (
    (errors.NotFound, StatusCode.NOT_FOUND),
    (errors.AlreadyExists, StatusCode.ALREADY_EXISTS),
    (errors.InvalidArgument, StatusCode.INVALID_ARGUMENT),
    (errors.FailedPrecondition, StatusCode.FAILED_PRECONDITION),
    (errors.Aborted, StatusCode.ABORTED),
    (errors.OutOfRange, StatusCode.OUT_OF_RANGE),
    (errors.Exhausted, StatusCode.RESOURCE_EXHAUSTED),
    (errors.Unavailable, StatusCode.UNAVAILABLE),
    (errors.DeadlinePassed, StatusCode.DEADLINE_EXCEEDED),
    (errors.Cancelled, StatusCode.CANCELLED),
    (errors.NotServed, StatusCode.UNIMPLEMENTED),
    (errors.Internal, StatusCode.INTERNAL),
)

# The message travels percent-encoded in its own header and once more within the details, which
# travel as base64: 1,000 + (1,000 + 3,000) * 4 / 3 stays under 8,192 with room for the other keys.
_MESSAGE_BYTES = 1000
_DETAILS_BYTES = 3000
_VALUE_CHARACTERS = 256


@dataclass(frozen=True)
class Refusal:
    """What a client gets in place of an answer."""

    code: StatusCode
    message: str
    trailing: tuple[tuple[str, str | bytes], ...]


def code_of(error: errors.RametError) -> StatusCode:
    """Returns the status code of an error; one that no branch names is INTERNAL."""
    for branch, code in _CODES:
        if isinstance(error, branch):
            return code
    return StatusCode.INTERNAL


def refusal(error: errors.RametError, call_id: str) -> Refusal:
    """Builds the status for an error; of a fault of the server it tells only the call's id."""
    code = code_of(error)
    message = f"Internal error in call {call_id}." if code is StatusCode.INTERNAL else _cut(error.message)
    status = status_pb2.Status(code=code.value[0], message=message)
    room = _DETAILS_BYTES
    for detail in _details(error, code):
        packed = any_pb2.Any()
        packed.Pack(detail)
        if packed.ByteSize() <= room:
            room -= packed.ByteSize()
            status.details.append(packed)
    trailing: list[tuple[str, str | bytes]] = [(DETAILS_KEY, status.SerializeToString()), (CALL_ID_KEY, call_id)]
    if error.retry_after_s is not None:
        trailing.append((PUSHBACK_KEY, str(_milliseconds(error.retry_after_s))))
    return Refusal(code, message, tuple(trailing))


def _details(error: errors.RametError, code: StatusCode) -> list[Message]:
    info = error_details_pb2.ErrorInfo(reason=error.reason, domain=ERROR_DOMAIN)
    if code is StatusCode.INTERNAL:
        return [info]
    details: list[Message] = [info]
    room = _DETAILS_BYTES // 2
    for key, value in error.details.items():
        value = _sane(value[:_VALUE_CHARACTERS])
        room -= len(key) + len(value.encode())
        if room > 0:
            info.metadata[key] = value
    if error.retry_after_s is not None:
        delay = duration_pb2.Duration()
        delay.FromMilliseconds(_milliseconds(error.retry_after_s))
        details.append(error_details_pb2.RetryInfo(retry_delay=delay))
    if error.field is not None:
        violation = error_details_pb2.BadRequest.FieldViolation(
            field=_sane(error.field[:_VALUE_CHARACTERS]), description=_cut(error.message, 500), reason=error.reason
        )
        details.append(error_details_pb2.BadRequest(field_violations=[violation]))
    return details


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))


def _sane(text: str) -> str:
    """Replaces lone surrogates, which no protobuf text can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _cut(text: str, limit: int = _MESSAGE_BYTES) -> str:
    """Cuts a text to ``limit`` bytes as gRPC percent-encodes it."""
    text = _sane(text)
    while len(quote(text, safe="")) > limit:
        text = text[: max(1, len(text) * limit // len(quote(text, safe="")) - 4)] + "..."
    return text
