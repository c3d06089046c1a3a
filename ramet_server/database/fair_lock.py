"""A lock whose waiters get their turn in the order they came."""

import threading
from collections import deque


class FairLock:
    """A lock for threads, first come first served; not reentrant."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held = False
        self._waiters: deque[threading.Event] = deque()

    def acquire(self, timeout: float | None) -> bool:
        """Waits for the lock, at most ``timeout`` seconds; tells whether it was obtained."""
        with self._guard:
            if not self._held:
                self._held = True
                return True
            turn = threading.Event()
            self._waiters.append(turn)
        if turn.wait(timeout):
            return True
        with self._guard:
            if turn.is_set():
                # The turn came between the timeout and here, and giving it up would help nobody.
                return True
            self._waiters.remove(turn)
            return False

    def release(self) -> None:
        """Hands the lock to the first waiter, or leaves it free."""
        with self._guard:
            if self._waiters:
                self._waiters.popleft().set()
            else:
                self._held = False
