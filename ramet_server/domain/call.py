"""What a rule knows of the call it works for: its space, deadline and cancellation."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ramet_server.domain.errors import Cancelled, DeadlinePassed
from ramet_server.domain.ids import new_id


class Cancellation:
    """What tells once that nobody waits for a call any more; it wakes threads that wait, and listeners.

    Every call has one and hardly any is cancelled, so it costs a lock and a list until somebody waits.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._listeners: list[Callable[[], None]] = []
        self._set = False

    def is_set(self) -> bool:
        """Tells whether the call was cancelled."""
        return self._set

    def set(self) -> None:
        """Cancels, and runs each listener in the caller's thread; they must not block."""
        self._set = True
        with self._guard:
            listeners = list(self._listeners)
        for listener in listeners:
            listener()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the call is cancelled, at most ``timeout`` seconds; tells whether it was."""
        event = threading.Event()
        self.listen(event.set)
        try:
            return event.wait(timeout)
        finally:
            self.unlisten(event.set)

    def listen(self, listener: Callable[[], None]) -> None:
        """Adds a listener; it runs at once where the call is cancelled already."""
        with self._guard:
            self._listeners.append(listener)
        if self.is_set():
            listener()

    def unlisten(self, listener: Callable[[], None]) -> None:
        """Takes a listener away; one that runs at this moment may still finish."""
        with self._guard:
            self._listeners.remove(listener)


@dataclass(frozen=True)
class Call:
    """One call of a client, or one piece of background work."""

    space: str
    """The space whose rows the call may see."""
    deadline: float | None = None
    """Moment on ``time.monotonic()`` after which the work is pointless; None for no limit."""
    call_id: str = field(default_factory=new_id)
    """Id that logs and the client's answer share."""
    cancelled: Cancellation = field(default_factory=Cancellation)
    """Set when nobody waits for the answer any more."""

    def remaining(self) -> float | None:
        """Seconds until the deadline, not below 0; None without a deadline."""
        if self.deadline is None:
            return None
        return max(0.0, self.deadline - time.monotonic())

    def check(self) -> None:
        """Raises Cancelled or DeadlinePassed where the work is pointless by now."""
        if self.cancelled.is_set():
            raise Cancelled("The call was cancelled.")
        if self.deadline is not None and time.monotonic() >= self.deadline:
            raise DeadlinePassed("The call's deadline passed.")
