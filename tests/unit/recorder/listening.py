"""A recorder that sends nothing, and what it would have sent."""

from __future__ import annotations

from typing import Any

from ramet.recorder import Limits, Recorder
from ramet.recorder.sender import Sender
from ramet.telemetry.v1 import telemetry_pb2 as pb


class ListeningRecorder(Recorder):
    """Keeps its events in its queue."""

    def __init__(self, **options: Any) -> None:
        super().__init__("127.0.0.1:1", **{"limits": Limits(queue_bytes=1 << 26), **options})

    def _start(self) -> Sender | None:
        return None

    def told(self) -> list[pb.Event]:
        """Returns the events so far, once."""
        entries = self._backlog.take(10_000, 1 << 30)
        return [pb.Event.FromString(entry.event) for entry in entries if entry.event is not None]

    def bodies(self, kind: str) -> list[Any]:
        """Returns the bodies of one kind so far, once."""
        return [getattr(event, kind) for event in self.told() if event.HasField(kind)]  # type: ignore[arg-type]  # a name
