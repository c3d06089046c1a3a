"""What messages of all nouns share: mutations, moments, and fields that must be known."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Literal, Protocol, TypeVar

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.unknown_fields import UnknownFieldSet

from ramet_server.domain.errors import InvalidField
from ramet_server.domain.idempotency import Mutation, body_hash
from ramet_server.domain.ids import check_optional_id

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST_SECOND = -62_135_596_800
_LAST_SECOND = 253_402_300_799
_LATEST = datetime.max.replace(tzinfo=UTC)

K = TypeVar("K")
V = TypeVar("V")


class _Mutating(Protocol):
    """A request that changes something."""

    request_id: str

    def SerializeToString(self, *, deterministic: bool = ...) -> bytes: ...
    def ClearField(self, field_name: Literal["request_id"]) -> None: ...


def mutation(method: str, request: _Mutating) -> Mutation:
    """Returns what tells this request from others, and takes the request_id out of it.

    The hash of all else in it is only made where there is a request_id: nobody asks for it otherwise.
    """
    request_id = check_optional_id(request.request_id, "request_id")
    if request_id is None:
        return Mutation(None, method, "")
    request.ClearField("request_id")
    return Mutation(request_id, method, body_hash(method, request.SerializeToString(deterministic=True)))


def known(values: Mapping[K, V], number: K, field: str) -> V:
    """Returns the value of an enum's number; one that this server does not know is refused."""
    if number not in values:
        raise InvalidField(f"{field} is missing, or one that this server does not know.", field=field)
    return values[number]


def refuse_unknown_fields(message: Message, field: str) -> None:
    """Refuses a filter with a condition that this server does not know: without it, it would admit too much."""
    if len(UnknownFieldSet(message)):
        raise InvalidField(f"{field} holds a condition that this server does not know.", field=field)


def moment(message: Timestamp, field: str) -> datetime:
    """Returns the first microsecond that is not before a timestamp."""
    _check_timestamp(message, field)
    try:
        return _EPOCH + timedelta(0, message.seconds, -(-message.nanos // 1000))
    except OverflowError:
        return _LATEST


def moment_message(value: datetime) -> Timestamp:
    """Writes a moment."""
    seconds, microseconds = divmod((value - _EPOCH) // _MICROSECOND, 1_000_000)
    return Timestamp(seconds=seconds, nanos=microseconds * 1000)


def moment_text(message: Timestamp, field: str) -> str:
    """Returns a client's own time as RFC 3339 text, to the nanosecond."""
    _check_timestamp(message, field)
    return message.ToJsonString()


def moment_of_text(text: str) -> Timestamp:
    """Writes a client's own time."""
    message = Timestamp()
    message.FromJsonString(text)
    return message


def _check_timestamp(message: Timestamp, field: str) -> None:
    if not (_FIRST_SECOND <= message.seconds <= _LAST_SECOND and 0 <= message.nanos < 1_000_000_000):
        raise InvalidField(f"{field} is no time of the years 1 to 9999.", field=field)
