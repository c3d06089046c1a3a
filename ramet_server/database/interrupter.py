"""Stops database work whose caller no longer waits, without a cost for work that ends in time."""

import threading
import time
from collections.abc import Callable

from ramet_server.domain.call import Call

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0


class Watch:
    """One unit of work under the interrupter's eyes."""

    def __init__(self, call: Call, interrupt: Callable[[int], None]) -> None:
        self.call = call
        self.interrupted = False
        """Whether the unit was hit; its connection may then still owe an error."""
        self._interrupt = interrupt
        self._guard = threading.Lock()
        self._open = True
        self._strikes = 0
        self._not_before = 0.0

    def check(self) -> None:
        """Raises where the call is over, before another statement starts."""
        self.call.check()

    def due_at(self) -> float:
        """Returns the monotonic moment of the next strike; infinity where none is to come."""
        if self.call.cancelled.is_set():
            return self._not_before
        if self.call.deadline is None:
            return float("inf")
        return max(self.call.deadline, self._not_before)

    def strike(self) -> None:
        """Interrupts the unit unless it has ended."""
        with self._guard:
            if not self._open:
                return
            self.interrupted = True
            self._strikes += 1
            self._interrupt(self._strikes)
            # A strike between two statements hits nothing, so there may have to be another.
            pause = min(_FIRST_PAUSE_S * 2 ** (self._strikes - 1), _LONGEST_PAUSE_S)
            self._not_before = time.monotonic() + pause

    def end(self) -> None:
        """Ends the time in which the unit may be hit; waits for a strike in progress."""
        with self._guard:
            self._open = False


class Interrupter:
    """Watches units, and strikes those whose deadline passes or whose call is cancelled.

    One thread sleeps until the nearest deadline; a unit that ends before costs a lock and a set entry.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._watches: set[Watch] = set()
        self._wake_at = float("-inf")
        self._thread: threading.Thread | None = None
        self._closed = False

    def watch(self, call: Call, interrupt: Callable[[int], None]) -> Watch:
        """Starts to watch a unit; ``interrupt`` gets the number of the strike, from 1, in the thread here.

        It must neither raise nor block for long.
        """
        watch = Watch(call, interrupt)
        with self._changed:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="ramet-interrupter", daemon=True)
                self._thread.start()
            self._watches.add(watch)
            if watch.due_at() < self._wake_at:
                self._changed.notify()
        call.cancelled.listen(self._wake)
        return watch

    def forget(self, watch: Watch) -> None:
        """Ends a watch; afterwards the unit is never hit."""
        watch.end()
        watch.call.cancelled.unlisten(self._wake)
        with self._changed:
            self._watches.discard(watch)

    def close(self) -> None:
        """Stops the thread; units that still run are no longer watched."""
        with self._changed:
            self._closed = True
            self._changed.notify()
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                due = self._next_due()
            if due is None:
                return
            for watch in due:
                watch.strike()

    def _next_due(self) -> list[Watch] | None:
        """Waits until units are due and returns them; None after close."""
        while not self._closed:
            now = time.monotonic()
            due = [watch for watch in self._watches if watch.due_at() <= now]
            if due:
                return due
            self._wake_at = min((watch.due_at() for watch in self._watches), default=float("inf"))
            self._changed.wait(None if self._wake_at == float("inf") else self._wake_at - now)
            self._wake_at = float("-inf")
        return None
