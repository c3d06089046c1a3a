"""What every call shares: checks of ids and versions, and the errors about a session's state."""

from ramet_server.domain.errors import (
    AboveHead,
    BelowTrimFloor,
    InvalidField,
    SessionArchived,
    SessionNotFound,
    StaleHead,
    StaleVersion,
)
from ramet_server.domain.idempotency import Mutation
from ramet_server.domain.ids import check_optional_id
from session_service.rules.values import Session, Status


def check_mutation(mutation: Mutation) -> None:
    """Checks the request_id of a mutation."""
    if mutation.request_id is not None:
        check_optional_id(mutation.request_id, "request_id")


def check_not_negative(value: int | None, field: str) -> None:
    """Checks a seq, a version or a count that may be absent."""
    if value is not None and value < 0:
        raise InvalidField(f"{field} must not be negative.", field=field)


def not_found() -> SessionNotFound:
    """Says that there is no such session."""
    return SessionNotFound("No session has this id.", field="session_id")


def found(session: Session | None) -> Session:
    """Returns the session, or says that there is none."""
    if session is None:
        raise not_found()
    return session


def writable(session: Session | None) -> Session:
    """Returns the session if it takes writes."""
    if found(session).status is Status.ARCHIVED:
        raise SessionArchived("The session is archived and takes no writes.")
    return found(session)


def check_version(expected: int | None, current: int) -> None:
    """Checks the version that a caller expects."""
    if expected is not None and expected != current:
        raise StaleVersion(
            "The version is not the expected one.",
            field="expected_version",
            details={"current": str(current)},
        )


def check_head(expected: int | None, session: Session) -> None:
    """Checks the head that a caller expects."""
    if expected is not None and expected != session.head_seq:
        raise StaleHead(
            "The session has moved on from the expected head.",
            field="expected_head_seq",
            details={"head_seq": str(session.head_seq)},
        )


def below_floor(floor_seq: int, field: str) -> BelowTrimFloor:
    """Says that a place was trimmed away."""
    return BelowTrimFloor(
        f"{field} lies below what the session still shows.", field=field, details={"floor_seq": str(floor_seq)}
    )


def above_head(head_seq: int, field: str) -> AboveHead:
    """Says that a place lies after the last record."""
    return AboveHead(f"{field} lies after the session's head.", field=field, details={"head_seq": str(head_seq)})
