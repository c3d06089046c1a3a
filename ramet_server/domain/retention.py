"""How long sessions and telemetry are kept, and what becomes of telemetry when its conversation is deleted."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ramet_server.domain.errors import RametError
from ramet_server.domain.ids import check_id

_MOST_DAYS = 36_500


class OnDelete(StrEnum):
    """What becomes of the diagnoses of a deleted conversation."""

    KEEP = "keep"
    """They go on naming it."""
    DETACH = "detach"
    """They name no conversation any more."""
    DELETE = "delete"


@dataclass(frozen=True)
class KeptDays:
    """For how long something is kept, by the operator's choice."""

    days: int = 0
    """Days after its last change for which a thing is kept; 0 is for ever."""
    days_of: Mapping[str, int] = field(default_factory=dict)
    """The same, for spaces that differ."""

    def days_in(self, space: str) -> int:
        """Returns the days of one space."""
        return self.days_of.get(space, self.days)

    @property
    def expires(self) -> bool:
        """Whether anything is ever deleted by age."""
        return self.days > 0 or any(self.days_of.values())


@dataclass(frozen=True)
class Retention(KeptDays):
    """For how long diagnoses are kept, and what takes them along."""

    on_delete: OnDelete = OnDelete.DETACH


def read_days(text: str) -> tuple[int, Mapping[str, int]]:
    """Reads days for all spaces, then those that differ, as in ``90,team-a=14,audit=0``.

    Raises ValueError that says what is wrong.
    """
    days, days_of = 0, {}
    for place, part in enumerate(text.split(",")):
        space, named, number = part.strip().rpartition("=")
        if not named and place:
            raise ValueError("Only the first number stands without a space, as in 90,team-a=14.")
        if not number.isascii() or not number.isdigit() or int(number) > _MOST_DAYS:
            raise ValueError(f"{number!r} is no number of days.")
        if not named:
            days = int(number)
            continue
        try:
            days_of[check_id(space, "The space")] = int(number)
        except RametError as error:
            raise ValueError(error.message) from None
    return days, days_of
