"""What tells a change of a row."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Kind(StrEnum):
    """What changed, in the order in which changes of one moment are told."""

    DIAGNOSIS = "DIAGNOSIS"
    STEP = "STEP"
    TOOL = "TOOL"


@dataclass(frozen=True, slots=True)
class ChangePlace:
    """Where a look at changes stands: after the change of this moment and row."""

    updated_at: datetime
    id: int


@dataclass(frozen=True, slots=True)
class Change:
    """That a row changed, and when."""

    kind: Kind
    id: int
    updated_at: datetime
