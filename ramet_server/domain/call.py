"""What a rule knows of the call it works for: its space, deadline and cancellation."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ramet_server.domain.errors import Cancelled, DeadlinePassed
from ramet_server.domain.ids import new_id

_guard = threading.Lock()
"""Over the listeners of all calls: held for a moment only, so that not every call needs one of its own."""


class Cancellation:
    """What tells once that nobody waits for a call any more; it wakes threads that wait, and listeners.

    Every call has one and hardly any is cancelled, so it costs next to nothing until somebody listens.
    """

    __slots__ = ("_listeners", "_set")

    def __init__(self) -> None:
        self._listeners: tuple[Callable[[], None], ...] = ()
        self._set = False

    def is_set(self) -> bool:
        """Tells whether the call was cancelled."""
        return self._set

    def set(self) -> None:
        """Cancels, and runs each listener in the caller's thread; they must not block."""
        self._set = True
        with _guard:
            listeners = self._listeners
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
        with _guard:
            self._listeners = (*self._listeners, listener)
        if self.is_set():
            listener()

    def unlisten(self, listener: Callable[[], None]) -> None:
        """Takes a listener away; one that runs at this moment may still finish."""
        with _guard:
            others = list(self._listeners)
            others.remove(listener)
            self._listeners = tuple(others)


@dataclass(frozen=True, slots=True)
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
