"""Events before they are written: what an agent's thread leaves, and how the sender's thread makes bytes of it."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ramet.telemetry.v1 import telemetry_pb2 as pb

__all__ = ["DRAFT_BYTES", "Draft", "Kept", "Writer", "set_time"]

_log = logging.getLogger("ramet.recorder")

DRAFT_BYTES = 400
"""What a draft costs beside its texts, about."""

Kept = tuple[int, Callable[[], pb.Event]]
"""What was kept of an event: how many bytes its texts may take, and how to write its body.

Writing happens later and on another thread: it must read nothing that anybody may still change.
"""


@dataclass(slots=True)
class Draft:
    """An event that is recorded and not written yet."""

    kind: str
    session_id: str
    at_ns: int
    """When it was recorded, in nanoseconds since 1970."""
    size: int
    """Bytes that it may take, about; rather too many than too few."""
    write: Callable[[], pb.Event]
    seq: int = 0


class Writer:
    """Writes the events of one producer."""

    def __init__(self, producer_id: str, max_bytes: int) -> None:
        self._producer_id = producer_id
        self._max_bytes = max_bytes
        self._told: set[str] = set()

    def write(self, draft: Draft) -> bytes | None:
        """Returns an event as bytes; None: it cannot be written, or is too large."""
        try:
            event = draft.write()
            event.event_id = f"{self._producer_id}.{draft.seq}"
            event.session_id = draft.session_id
            set_time(event.occurred_at, draft.at_ns)
            data = event.SerializeToString()
        except Exception as fault:  # noqa: BLE001 - whatever an agent handed over, its neighbours must be written
            self.tell(draft.kind, fault)
            return None
        return data if len(data) <= self._max_bytes else None

    def tell(self, kind: str, fault: Exception) -> None:
        """Logs that events of a kind cannot be made, once for each kind."""
        if kind not in self._told:
            self._told.add(kind)
            # Not its text: that may hold what the mask would have taken out.
            _log.warning("An event of kind %s cannot be made (%s); it is dropped.", kind, type(fault).__name__)


def set_time(stamp: Any, at_ns: int) -> None:
    """Sets a timestamp, in microseconds as servers keep it."""
    stamp.seconds, rest = divmod(at_ns, 1_000_000_000)
    stamp.nanos = rest // 1000 * 1000
