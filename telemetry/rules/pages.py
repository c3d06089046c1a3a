"""Where lists stand, and what one call looks at of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from ramet_server.domain.errors import InvalidField
from ramet_server.domain.paging import PageToken

EXAMINED = 10_000
"""Entries of an index that one call looks at where the index alone does not decide."""

EXAMINED_TEXTS = 2000
"""The same, where each entry's text has to be read."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a list by time stands: after the row of this moment and number."""

    created_at: datetime
    id: int


@dataclass(frozen=True, slots=True)
class PageWish:
    """Which page of a list is wanted, as the request says it."""

    size: int = 0
    token: str = ""


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """What one call found, in the order of the list."""

    rows: Sequence[T]
    goes_on_after: Place | None
    """None where the list is over."""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a list."""

    rows: Sequence[T]
    next_token: str
    """Empty on the last page."""


def place_of(token: str, fingerprint: str) -> Place | None:
    """Reads where a page begins; None for the first one."""
    found = PageToken.decode(token, fingerprint, (datetime, int))
    if found is None:
        return None
    moment, number = found.position
    if not isinstance(moment, datetime) or not isinstance(number, int):
        raise TypeError("PageToken.decode checks the kinds.")
    return Place(moment, number)


def token_of(place: Place | None, fingerprint: str) -> str:
    """Writes where the next page begins; empty where there is none."""
    return "" if place is None else PageToken(fingerprint, (place.created_at, place.id)).encode()


def check_range(created_from: datetime | None, created_before: datetime | None, field: str) -> None:
    """Refuses a range that ends before it begins."""
    if created_from is not None and created_before is not None and created_before < created_from:
        raise InvalidField(f"{field} must not lie before created_from.", field=field)
