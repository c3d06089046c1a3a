"""Deleting all sessions of a space."""

from datetime import datetime
from typing import Protocol

from ramet_server.domain.call import Call
from session_service.rules.deletion import DeletionRules


class Begun(Protocol):
    """Sessions by the time at which they were made."""

    def through(self, call: Call, moment: datetime, limit: int) -> list[tuple[str, str]]:
        """Returns ids and origins of some sessions of the call's space that were made no later than a moment."""
        ...


class ClearRules:
    """Deletes the sessions of the call's space, one transaction each."""

    def __init__(self, begun: Begun, deletion: DeletionRules) -> None:
        self._begun = begun
        self._deletion = deletion

    def some(self, call: Call, through: datetime, limit: int) -> tuple[int, bool]:
        """Deletes some sessions made no later than a moment; returns how many, and whether there may be more."""
        found = self._begun.through(call, through, limit)
        deleted = sum(self._deletion.delete_incarnation(call, session_id, origin) for session_id, origin in found)
        return deleted, len(found) == limit
