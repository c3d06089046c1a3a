"""What a verification asks of a store; sessions, tags and slots are those of one space."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from session_service.rules.spans import Span

Range = tuple[int, int]
"""The first and the last seq, both included."""


@dataclass(frozen=True, slots=True)
class Tally:
    """The records of one origin, counted."""

    count: int = 0
    first_seq: int = 0
    last_seq: int = 0


@dataclass(frozen=True, slots=True)
class Standing:
    """What says which records a session shows."""

    session_id: str
    origin: str
    head_seq: int
    floor_seq: int
    spans: Sequence[Span]
    """In order of their first seq."""
    last_own_seq: int
    """Of its last record under its own origin; 0 where there is none."""
    open_groups: str | None
    """The state of its last tool-call groups; see ``tool_groups``."""
    marks: Sequence[int]
    """Records of broken tool-call groups that its forks leave out."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The session that an origin belongs to."""

    space_id: str
    session_id: str
    head_seq: int


class Audit(Protocol):
    """All that is looked at, and what may be changed to mend it."""

    def space_after(self, space: str) -> str | None:
        """Returns the next space, by name, that has rows of this service."""
        ...

    def sessions(self, after_id: str, limit: int) -> list[Standing]:
        """Returns the next sessions by id, fewer where they have many spans; none only behind the last."""
        ...

    def lock_session(self, session_id: str) -> Standing | None:
        """Returns a session; every other writer waits until this unit ends."""
        ...

    def lock_origin(self, origin: str) -> Owner | None:
        """Returns the session that an origin belongs to, in whatever space; nobody changes it until this unit ends."""
        ...

    def owners(self, origins: Collection[str]) -> Mapping[str, Owner]:
        """Returns the sessions, of all spaces, that these origins belong to."""
        ...

    def set_head(self, session_id: str, head_seq: int) -> None:
        """Stores another head; the state of its last tool-call group is forgotten."""
        ...

    def forget_groups(self, session_id: str) -> None:
        """Forgets the state of the last tool-call groups: the history tells it from now on."""
        ...

    def unmark(self, owner: str, seqs: Sequence[int]) -> None:
        """Removes some marks of broken groups."""
        ...

    def set_floor(self, session_id: str, floor_seq: int) -> None:
        """Stores another floor."""
        ...

    def add_span(self, owner: str, span: Span) -> None:
        """Stores one more span of an owner."""
        ...

    def spans_of(self, owner: str) -> list[Span]:
        """Returns the spans of an owner in order."""
        ...

    def delete_spans(self, owner: str) -> None:
        """Removes all spans of an owner."""
        ...

    def tallies(self, origins: Collection[str]) -> Mapping[str, Tally]:
        """Counts the records of origins; those without any are left out."""
        ...

    def covers(self, origins: Collection[str]) -> Mapping[str, Sequence[Range]]:
        """Returns, by origin, the ranges that sessions show."""
        ...

    def released(self, origins: Collection[str]) -> Mapping[str, Sequence[Range]]:
        """Returns, by origin, the ranges that wait for the sweep, and those that an import is filling."""
        ...

    def release(self, spans: Sequence[Span], now: datetime) -> None:
        """Notes ranges for the sweep, as ones that nobody known dropped."""
        ...

    def count(self, origin: str, seqs: Range) -> int:
        """Counts the records of a range."""
        ...

    def origins(self, after: str, limit: int) -> list[str]:
        """Returns the next origins that records or spans name, in order."""
        ...

    def showing(self, origin: str, seq: int) -> Owner | None:
        """Returns one of the sessions that show a record, whether it is there or not."""
        ...

    def strangers(self, part: str, after_id: str, limit: int) -> list[tuple[str, int]]:
        """Returns the next session ids that have rows of a part but no session, with the number of these rows.

        A part is ``session_tag`` or ``context_slot``.
        """
        ...

    def delete_strangers(self, part: str, session_id: str) -> None:
        """Removes what a part holds of a session that does not exist."""
        ...

    def ownerless(self, part: str, after: str, limit: int) -> list[tuple[str, int]]:
        """Returns the next origins that own rows of a part but are no session's, with the number of these rows.

        A part is ``history_span`` or ``broken_group``.
        """
        ...

    def delete_marks(self, owner: str) -> None:
        """Removes all marks of broken groups of an owner."""
        ...
