"""The ids that a composed operation carries, all made before its first step."""

import hashlib
from dataclasses import dataclass

from ramet.client.calls import new_request_id

__all__ = ["Steps"]

_LONGEST_ID = 128


@dataclass(frozen=True)
class Steps:
    """One operation of several calls: a repetition of it with the same id repeats the ids of every step."""

    operation: str
    """The request id of the whole."""

    @classmethod
    def of(cls, request_id: str | None) -> "Steps":
        """Begins an operation; without an id it gets a new one."""
        return cls(request_id or new_request_id())

    @property
    def session_id(self) -> str:
        """Id of the session that the operation makes, where the caller names none."""
        return _digest(f"{self.operation}:session-id")

    def id_of(self, step: str) -> str:
        """Returns the request id of one step; it reads well in a request log unless it would be too long."""
        name = f"{self.operation}:{step}"
        return name if len(name) <= _LONGEST_ID else _digest(name)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
