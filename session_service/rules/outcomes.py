"""What the request log keeps of a result, and its way back: ids, seqs, versions, counts and times."""

from datetime import UTC, datetime, timedelta

from ramet_server.domain.idempotency import Outcome

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def number_in(outcome: Outcome, name: str) -> int:
    """Returns a number of an outcome."""
    value = outcome[name]
    if not isinstance(value, int):
        raise TypeError(f"The request log holds no number under {name}.")
    return value


def text_in(outcome: Outcome, name: str) -> str:
    """Returns a text of an outcome."""
    value = outcome[name]
    if not isinstance(value, str):
        raise TypeError(f"The request log holds no text under {name}.")
    return value


def packed_moment(moment: datetime) -> int:
    """Returns a moment as microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


def moment_in(outcome: Outcome, name: str) -> datetime:
    """Returns a moment that ``packed_moment`` packed."""
    return _EPOCH + number_in(outcome, name) * _MICROSECOND
