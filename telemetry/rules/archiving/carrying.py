"""The rules of carrying diagnoses out and in: each whole, with its steps, tool calls and feedback."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeVar

from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from telemetry.rules.archiving.columns import DIAGNOSIS, FEEDBACK, STEP, TOOL, Field, Holds, Row
from telemetry.rules.row_ids import RowIds

_PAGE = 200

T = TypeVar("T")


@dataclass(frozen=True)
class Told:
    """A diagnosis with all that belongs to it."""

    diagnosis: Row
    steps: list[Row] = field(default_factory=list)
    tools: list[Row] = field(default_factory=list)
    feedback: list[Row] = field(default_factory=list)


@dataclass(frozen=True)
class Numbered:
    """A diagnosis, and where it stands in the order of creation."""

    created_at: datetime
    row_id: int
    diagnosis: Row


class Carried(Protocol):
    """Rows of one space as an archive has them."""

    def page(self, after: Numbered | None, limit: int, conversation_id: str | None) -> list[Numbered]:
        """Returns the next diagnoses in the order of their creation, of one conversation where one is named."""
        ...

    def parts(self, diagnosis: Row) -> Told:
        """Returns a diagnosis with all that belongs to it, each in the order of its row numbers or its index."""
        ...

    def lock(self, session_id: str) -> Row | None:
        """Returns a diagnosis; nobody else changes it until this unit ends."""
        ...

    def insert(self, told: Told, number: Callable[[], int]) -> None:
        """Stores a diagnosis with all that belongs to it, under new row numbers."""
        ...


class CarryingStore(Protocol):
    """Opens units of work in the space of a call."""

    def write(self, call: Call, fn: Callable[[Carried], T]) -> T:
        """Runs ``fn`` and commits; ``fn`` may run more than once."""
        ...


class LeavingDiagnoses:
    """Reads the diagnoses of one space within one unit of work, so as of one moment."""

    def __init__(self, unit: Carried) -> None:
        self._unit = unit

    def all(self, conversation_id: str | None = None) -> Iterator[Told]:
        """Yields diagnoses in the order of their creation, those of one conversation where one is named."""
        after: Numbered | None = None
        while page := self._unit.page(after, _PAGE, conversation_id):
            for each in page:
                yield self._unit.parts(each.diagnosis)
            after = page[-1]


class ArrivingDiagnoses:
    """The rules of bringing diagnoses."""

    def __init__(self, store: CarryingStore, clock: Clock, ids: RowIds) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids

    def bring(self, call: Call, told: Told) -> tuple[bool, str | None]:
        """Stores a diagnosis, whole; one that is there and equal stays. Returns whether it is new, and what differs."""
        session_id = str(told.diagnosis["session_id"])

        def work(unit: Carried) -> tuple[bool, str | None]:
            there = unit.lock(session_id)
            if there is not None:
                return False, _difference(unit.parts(there), told)
            unit.insert(told, lambda: self._ids.take(self._clock.now()))
            return True, None

        return self._store.write(call, work)


def _difference(there: Told, told: Told) -> str | None:
    for name, fields in (("diagnosis", DIAGNOSIS), ("steps", STEP), ("tools", TOOL), ("feedback", FEEDBACK)):
        ours, theirs = getattr(there, name), getattr(told, name)
        if name == "diagnosis":
            ours, theirs = [ours], [theirs]
        if len(ours) != len(theirs):
            return f"another number of {name}"
        for one, other in zip(_in_order(fields, ours), _in_order(fields, theirs), strict=True):
            for column, kind in fields.items():
                if not _same(kind, one[column], other[column]):
                    return f"another {column}"
    return None


def _in_order(fields: Mapping[str, Field], rows: Sequence[Row]) -> Sequence[Row]:
    key = next((name for name in ("step_key", "source") if name in fields), "session_id")
    key = "invocation_key" if "invocation_key" in fields else key
    return sorted(rows, key=lambda row: str(row[key]))


def _same(kind: Field, one: object, other: object) -> bool:
    if one == other:
        return True
    # MySQL stores JSON in a form of its own.
    return kind.holds is Holds.JSON and isinstance(one, str) and isinstance(other, str) and _value(one) == _value(other)


def _value(text: str) -> object:
    return json.loads(text)
