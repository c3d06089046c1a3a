"""What a verification asks of a store; all of it is of one space."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from telemetry.rules.ports import Totals


@dataclass(frozen=True, slots=True)
class Told:
    """What the row of a diagnosis says of its rows."""

    session_id: str
    totals: Totals
    feedback: str | None


class Audit(Protocol):
    """All that is looked at, and what may be changed to mend it."""

    def space_after(self, space: str) -> str | None:
        """Returns the next space, by name, that has rows of this service."""
        ...

    def diagnoses(self, after_id: str, limit: int) -> list[Told]:
        """Returns the next diagnoses by session_id."""
        ...

    def lock(self, session_id: str) -> Told | None:
        """Returns a diagnosis; nothing is merged into it until this unit ends."""
        ...

    def totals(self, session_ids: Collection[str]) -> Mapping[str, Totals]:
        """Returns what the rows of diagnoses add up to; one without any may be missing."""
        ...

    def feedback(self, session_ids: Collection[str]) -> Mapping[str, str]:
        """Returns the latest word on each diagnosis of which something is said."""
        ...

    def save_totals(self, session_id: str, totals: Totals) -> None:
        """Stores other totals; it counts as no change of the diagnosis."""
        ...

    def save_feedback(self, session_id: str, value: str | None) -> None:
        """Stores another latest word; it counts as no change of the diagnosis."""
        ...

    def strays(self, part: str, after_id: str, limit: int) -> list[tuple[str, int]]:
        """Returns the next session ids that have rows of a part but no diagnosis, with the number of these rows.

        A part is ``agent_step``, ``tool_invocation`` or ``diagnosis_feedback``.
        """
        ...

    def delete_strays(self, part: str, session_id: str) -> None:
        """Removes what a part holds of a diagnosis that does not exist."""
        ...

    def unlinked(self, after_id: str, limit: int) -> list[tuple[str, int]]:
        """Returns the next session ids with tool calls that do not have the id of their step, and how many they are."""
        ...

    def is_unlinked(self, session_id: str) -> int:
        """Returns how many tool calls of a diagnosis do not have the id of their step."""
        ...

    def link(self, session_id: str) -> None:
        """Gives the tool calls of a diagnosis the ids of their steps."""
        ...


PARTS: Sequence[tuple[str, str]] = (
    ("STEP_STRAY", "agent_step"),
    ("TOOL_STRAY", "tool_invocation"),
    ("FEEDBACK_STRAY", "diagnosis_feedback"),
)
"""The codes of rows without their diagnosis, and where these lie."""
