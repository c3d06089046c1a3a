"""The ids that a composed operation carries, all made before its first step."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ramet.client import RametError
from ramet.client.arguments import text
from ramet.client.calls import new_request_id

__all__ = ["Steps"]

_LONGEST_ID = 128


@dataclass(frozen=True)
class Steps:
    """One operation of several calls: a repetition of it with the same id repeats the ids of every step."""

    operation: str
    """The request id of the whole."""
    repeatable: bool
    """Whether the caller gave the id, so that this may be a repetition."""

    @classmethod
    @contextmanager
    def begin(cls, request_id: str | None) -> "Iterator[Steps]":
        """Begins an operation, with a new id where none is given; an error of any step then bears the whole's id."""
        if request_id is not None:
            text(request_id, "request_id")
        steps = cls(request_id or new_request_id(), repeatable=bool(request_id))
        try:
            yield steps
        except RametError as error:
            error.request_id = steps.operation
            raise

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
