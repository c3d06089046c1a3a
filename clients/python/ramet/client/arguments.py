"""Arguments become messages here; what fits none is refused as a server would refuse it, before anything is sent."""

import enum
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

import grpc
from google.protobuf.message import Message

from ramet.client.errors import FieldViolation, InvalidArgument

__all__ = ["build", "check_seconds", "check_space", "choice", "each", "of_kind", "refused", "text", "texts"]

_P = ParamSpec("_P")
_Kind = TypeVar("_Kind")
_Made = TypeVar("_Made")
_Choice = TypeVar("_Choice", bound=enum.StrEnum)
_Message = TypeVar("_Message", bound=Message)

_FAULTS = (TypeError, ValueError, AttributeError, OverflowError)
"""What protobuf, and whoever makes its values, raise at an argument of the wrong kind or out of range."""

_NOT_UTF_8 = "is not text that UTF-8 can hold"

_ID = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,126}[\x21-\x7e])?")


def build(kind: Callable[_P, _Message], *args: _P.args, **fields: _P.kwargs) -> _Message:
    """Makes a message; raises InvalidArgument with the path of the field that takes no such value."""
    given = {name: _ready(kind, name, value) for name, value in fields.items()}
    try:
        return kind(*args, **given)
    except _FAULTS as fault:
        raise _fault_found(kind, given, fault) from fault


def refused(field: str, why: str) -> InvalidArgument:
    """Makes the error of an argument that no server needs to see to refuse it."""
    return InvalidArgument(
        f"{field}: {why}" if field else why,
        code=grpc.StatusCode.INVALID_ARGUMENT,
        reason="INVALID_FIELD",
        violations=(FieldViolation(field, why),) if field else (),
    )


def choice(kind: type[_Choice], value: object, field: str) -> _Choice:
    """Returns the member that a value is, or that its text names."""
    try:
        return kind(value)  # type: ignore[arg-type]  # whatever it is, it names a member or does not
    except ValueError:
        raise refused(field, f"must be one of {', '.join(map(repr, map(str, kind)))}, not {value!r}") from None


def of_kind(kind: type[_Kind], value: object, field: str) -> _Kind:
    """Returns the value if it is of a kind."""
    if isinstance(value, kind):
        return value
    raise refused(field, f"must be of type {kind.__name__}, not {type(value).__name__}")


def text(value: object, field: str) -> str:
    """Returns the value if it is a text that UTF-8 can hold."""
    try:
        of_kind(str, value, field).encode()
    except UnicodeError:
        raise refused(field, _NOT_UTF_8) from None
    return str(value)


def each(function: Callable[[_Kind], _Made], values: Iterable[_Kind], field: str) -> Iterable[_Made]:
    """Maps a function over a list; what is none is refused here, what is in it by whoever takes the result."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise refused(field, f"must be a list, not {type(values).__name__}")
    return map(function, values)


def texts(values: Iterable[str], field: str) -> tuple[str, ...]:
    """Returns texts as a tuple; one text is not a list of its letters."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise refused(field, f"must be a list of texts, not {type(values).__name__}")
    listed = tuple(values)
    for place, value in enumerate(listed):
        of_kind(str, value, f"{field}[{place}]")
    return listed


def check_space(space: object) -> str:
    """Returns the name of a space, which travels as call metadata, where gRPC itself would break at a bad one."""
    if _ID.fullmatch(of_kind(str, space, "space")) is None:
        raise refused("space", "must be 1 to 128 printable ASCII characters with no space at either end")
    return str(space)


def check_seconds(seconds: object, field: str) -> float:
    """Returns a time to wait, in seconds."""
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not seconds > 0:
        raise refused(field, f"must be a number of seconds above 0, not {seconds!r}")
    return float(seconds)


def _ready(kind: Any, field: str, value: Any) -> Any:
    """Lists what is iterable, so that the faulty item can be named; a text is one value, and no list of letters."""
    if isinstance(value, str | bytes):
        if kind.DESCRIPTOR.fields_by_name[field].is_repeated:
            raise refused(field, "must be a list, not one text")
        return value
    if isinstance(value, Message | Mapping) or not isinstance(value, Iterable):
        return value
    listed: list[Any] = []
    try:
        for item in value:
            listed.append(item)
    except InvalidArgument as fault:
        inner = f".{fault.field}" if fault.field else ""
        why = fault.violations[0].description if fault.violations else fault.message
        raise refused(f"{field}[{len(listed)}]{inner}", why) from fault
    except _FAULTS as fault:
        raise refused(f"{field}[{len(listed)}]", str(fault)) from fault
    return listed


def _fault_found(kind: Any, given: dict[str, Any], fault: Exception) -> InvalidArgument:
    """Tries the fields one by one, since protobuf does not tell which it was."""
    for name, value in given.items():
        places = [(name, value)]
        if isinstance(value, list):
            places = [(f"{name}[{place}]", [item]) for place, item in enumerate(value)]
        for path, tried in places:
            try:
                kind(**{name: tried})
            except _FAULTS as found:
                return refused(path, _told(found, tried[0] if isinstance(tried, list) else tried))
    return refused("", str(fault))


def _told(fault: Exception, value: object) -> str:
    if isinstance(fault, UnicodeError):
        return _NOT_UTF_8
    if isinstance(fault, TypeError):
        return f"cannot be of type {type(value).__name__}"
    return str(fault)
