"""Pages: their size, and the opaque token that says where the next one begins."""

import base64
import binascii
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ramet_server.domain.errors import InvalidField, InvalidPageToken

Position = str | int | datetime
"""One part of where a page begins; texts are ASCII, datetimes are aware and keep their microseconds."""

_TOKEN_LIMIT = 2048
_INT64 = 1 << 63
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def check_page_size(value: int, default: int, maximum: int, field: str = "page_size") -> int:
    """Returns the entries to put on a page: 0 means the default, and more than the maximum is cut."""
    if value < 0:
        raise InvalidField(f"{field} must not be negative.", field=field)
    return min(value or default, maximum)


def query_fingerprint(*parts: object) -> str:
    """Returns a short text that differs for each query; parts are JSON values or datetimes.

    Give it all that chooses and orders the entries (method, space, filters, order), not the page size.
    """
    text = json.dumps(parts, sort_keys=True, default=_as_text)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True)
class PageToken:
    """The place after which the next page begins, bound to one query."""

    fingerprint: str
    position: tuple[Position, ...]

    def encode(self) -> str:
        """Returns the opaque text that a client hands back."""
        position = [_pack(part) for part in self.position]
        packed = json.dumps([self.fingerprint, position], separators=(",", ":")).encode("ascii")
        return base64.urlsafe_b64encode(packed).rstrip(b"=").decode("ascii")

    @classmethod
    def decode(
        cls,
        token: str,
        fingerprint: str,
        kinds: Sequence[type[str] | type[int] | type[datetime]],
    ) -> "PageToken | None":
        """Returns what ``encode`` packed, and None for the empty text, which is the first page.

        ``kinds`` are the types of the position's parts. A damaged token, or one of another query,
        raises InvalidPageToken.
        """
        if not token:
            return None
        found, position = _open(token)
        if found != fingerprint:
            raise _refusal("belongs to another query")
        if len(position) != len(kinds):
            raise _refusal("is damaged")
        parts = tuple(_unpack(part, kind) for part, kind in zip(position, kinds, strict=True))
        return cls(fingerprint, parts)


def _open(token: str) -> tuple[str, list[object]]:
    if len(token) > _TOKEN_LIMIT:
        raise _refusal("is damaged")
    try:
        padded = token.encode("ascii") + b"=" * (-len(token) % 4)
        value = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        fingerprint, position = value
    except (UnicodeError, binascii.Error, ValueError, TypeError, RecursionError) as fault:
        raise _refusal("is damaged") from fault
    if not isinstance(fingerprint, str) or not isinstance(position, list):
        raise _refusal("is damaged")
    return fingerprint, position


def _pack(part: Position) -> str | int:
    if isinstance(part, datetime):
        return (part - _EPOCH) // _MICROSECOND
    return part


def _unpack(part: object, kind: type[str] | type[int] | type[datetime]) -> Position:
    # Texts are ids. Any other text is a forgery, which databases would refuse each in its own way.
    if kind is str and isinstance(part, str) and part.isascii() and "\0" not in part:
        return part
    if isinstance(part, int) and not isinstance(part, bool) and -_INT64 <= part < _INT64:
        if kind is int:
            return part
        if kind is datetime:
            try:
                return _EPOCH + part * _MICROSECOND
            except OverflowError as fault:
                raise _refusal("is damaged") from fault
    raise _refusal("is damaged")


def _refusal(why: str) -> InvalidPageToken:
    return InvalidPageToken(f"page_token {why}.", field="page_token")


def _as_text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} cannot be part of a query's fingerprint")
