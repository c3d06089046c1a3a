"""The one tree of errors that Ramet's rules and stores raise.

Each leaf has a stable ``reason``; the branch above it decides the gRPC status, in one place only.

::

    RametError
    |- NotFound            SessionNotFound, NodeNotFound, RecordNotFound, DiagnosisNotFound
    |- AlreadyExists       SessionExists, NodeExists, RequestIdReused
    |- InvalidArgument     InvalidField, TooLarge, InvalidPageToken, InvalidMessage
    |- FailedPrecondition  SessionArchived, NodeHasChildren, MoveMakesCycle, IllegalRef
    |- Aborted             StaleVersion, StaleHead, WriteConflict, TransactionConflict, TransactionExpired,
    |                      ProducerReplaced
    |- OutOfRange          BelowTrimFloor, AboveHead
    |- Exhausted           Overloaded
    |- Unavailable         DatabaseUnavailable, OutcomeUnknown, Draining, SchemaMismatch
    |- DeadlinePassed
    |- Cancelled
    |- NotServed
    `- Internal
"""

from collections.abc import Mapping
from typing import ClassVar


class RametError(Exception):
    """An answer of the product that is not a success.

    ``message`` and ``details`` reach the client, so neither may hold SQL or stored content.
    """

    reason: ClassVar[str] = "INTERNAL"

    def __init__(
        self,
        message: str,
        *,
        field: str | None = None,
        details: Mapping[str, str] | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        """Path of the request's field at fault, as in ``records[2].content``."""
        self.details: dict[str, str] = dict(details or {})
        """What a program needs to go on, such as the current version."""
        self.retry_after_s = retry_after_s
        """Seconds after which a retry makes sense; None where that is not known."""


class NotFound(RametError):
    """The thing asked for does not exist in this space."""


class SessionNotFound(NotFound):
    """No session has this id."""

    reason = "SESSION_NOT_FOUND"


class NodeNotFound(NotFound):
    """No node of the forest has this id."""

    reason = "NODE_NOT_FOUND"


class RecordNotFound(NotFound):
    """The session shows no record with this seq."""

    reason = "RECORD_NOT_FOUND"


class DiagnosisNotFound(NotFound):
    """Nothing was heard of a diagnosis with this id."""

    reason = "DIAGNOSIS_NOT_FOUND"


class AlreadyExists(RametError):
    """What was to be created is there already."""


class SessionExists(AlreadyExists):
    """A session with this id exists."""

    reason = "SESSION_EXISTS"


class NodeExists(AlreadyExists):
    """A node with this id exists."""

    reason = "NODE_EXISTS"


class RequestIdReused(AlreadyExists):
    """The request_id was used before, with another body."""

    reason = "REQUEST_ID_REUSED"


class InvalidArgument(RametError):
    """The request can never succeed as it is, whatever is stored."""


class InvalidField(InvalidArgument):
    """A field breaks its rule; ``field`` names it."""

    reason = "INVALID_FIELD"


class TooLarge(InvalidArgument):
    """A field or request is over a limit; details hold ``limit`` and ``unit``."""

    reason = "TOO_LARGE"


class InvalidPageToken(InvalidArgument):
    """The page token is damaged or belongs to another query."""

    reason = "INVALID_PAGE_TOKEN"


class InvalidMessage(InvalidArgument):
    """The bytes of the request are no such message."""

    reason = "INVALID_MESSAGE"


class FailedPrecondition(RametError):
    """The state of the thing forbids it, and a retry alone cannot help."""


class SessionArchived(FailedPrecondition):
    """The session is archived and takes no writes."""

    reason = "SESSION_ARCHIVED"


class NodeHasChildren(FailedPrecondition):
    """The node has children and the delete policy is to refuse."""

    reason = "NODE_HAS_CHILDREN"


class MoveMakesCycle(FailedPrecondition):
    """The new parent is the node itself or below it."""

    reason = "MOVE_MAKES_CYCLE"


class IllegalRef(FailedPrecondition):
    """A reference to itself, an ancestor or a descendant."""

    reason = "ILLEGAL_REF"


class Aborted(RametError):
    """Something changed meanwhile; read again, then decide."""


class StaleVersion(Aborted):
    """The expected version is not the current one; details hold ``current``."""

    reason = "STALE_VERSION"


class StaleHead(Aborted):
    """The expected head is not the session's head; details hold ``head_seq``."""

    reason = "STALE_HEAD"


class WriteConflict(Aborted):
    """The database kept refusing the transaction because of others; nothing was changed."""

    reason = "WRITE_CONFLICT"


class TransactionConflict(Aborted):
    """What a transaction read has moved since; details hold ``session_id``, ``moved``, ``read`` and ``current``."""

    reason = "TRANSACTION_CONFLICT"


class TransactionExpired(Aborted):
    """A transaction was left open for too long; details hold ``limit`` and ``unit``."""

    reason = "TRANSACTION_EXPIRED"


class ProducerReplaced(Aborted):
    """A newer stream of the same producer has taken over."""

    reason = "PRODUCER_REPLACED"


class OutOfRange(RametError):
    """A position lies outside the history that is kept."""


class BelowTrimFloor(OutOfRange):
    """Records at this position were trimmed; details hold ``floor_seq``."""

    reason = "BELOW_TRIM_FLOOR"


class AboveHead(OutOfRange):
    """The position lies after the last record; details hold ``head_seq``."""

    reason = "ABOVE_HEAD"


class Exhausted(RametError):
    """A quota or a capacity is used up for now."""


class Overloaded(Exhausted):
    """The server has more calls waiting than it takes; ``retry_after_s`` is set."""

    reason = "OVERLOADED"


class Unavailable(RametError):
    """The service cannot answer now; a retry may succeed."""


class DatabaseUnavailable(Unavailable):
    """The database cannot be reached or takes no writes; nothing was changed."""

    reason = "DATABASE_UNAVAILABLE"


class OutcomeUnknown(Unavailable):
    """The connection was lost during COMMIT; only a retry with the same request_id can tell."""

    reason = "OUTCOME_UNKNOWN"


class Draining(Unavailable):
    """The server is shutting down and takes no new calls."""

    reason = "DRAINING"


class SchemaMismatch(Unavailable):
    """The database's schema is not the one this server was built for."""

    reason = "SCHEMA_MISMATCH"


class DeadlinePassed(RametError):
    """The call's deadline passed before the work was done; nothing was changed."""

    reason = "DEADLINE_PASSED"


class Cancelled(RametError):
    """The caller went away before the work was done; nothing was changed."""

    reason = "CANCELLED"


class NotServed(RametError):
    """The method is part of the contract, but this server does not serve it yet."""

    reason = "NOT_SERVED"


class Internal(RametError):
    """A fault of the server; the cause is in its log only."""

    reason = "INTERNAL"


def too_large(what: str, limit: int, unit: str, field: str | None = None) -> TooLarge:
    """Says that ``what`` is over ``limit`` in ``unit``, with both in the details."""
    return TooLarge(
        f"{what} is over the limit of {limit} {unit}.",
        field=field,
        details={"limit": str(limit), "unit": unit},
    )
