"""Which sessions a list admits and in which order, and what one call looks at of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from session_service.rules.values import Session, Status


class SessionOrder(StrEnum):
    """What a list of sessions is ordered by; equal times by id."""

    ID = "ID"
    CREATED_AT = "CREATED_AT"
    LAST_ACTIVE_AT = "LAST_ACTIVE_AT"


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Conditions that must all hold."""

    status: Status | None = None
    tags: tuple[str, ...] = ()
    label_prefix: str = ""
    created_from: datetime | None = None
    created_before: datetime | None = None
    last_active_from: datetime | None = None
    last_active_before: datetime | None = None


def beyond_index(admits: SessionFilter, order: SessionOrder) -> SessionFilter:
    """Returns the conditions that are left where a list is a stretch of its index: of the first tag, or of a time."""
    if order is SessionOrder.ID:
        return replace(admits, tags=admits.tags[1:])
    if order is SessionOrder.CREATED_AT:
        return replace(admits, created_from=None, created_before=None)
    return replace(admits, last_active_from=None, last_active_before=None)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a list stands: after the session with this key and id."""

    key: datetime | None
    """The time that the list is ordered by; None where it is ordered by id."""
    session_id: str


@dataclass(frozen=True, slots=True)
class SessionQuery:
    """One page of a list, and how far it may look for it."""

    admits: SessionFilter
    order: SessionOrder
    descending: bool
    after: Place | None
    limit: int
    """Most sessions to return."""
    examine: int
    """Most entries of the index to look at, at least ``limit``."""
    max_metadata: int
    """Once the metadata_json of the page is larger than this, in characters or bytes, the page ends."""


@dataclass(frozen=True, slots=True)
class Examined:
    """What one call found."""

    sessions: Sequence[Session]
    goes_on_after: Place | None
    """Where the next call begins; None where the list is over."""
