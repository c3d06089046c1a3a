"""A server of Ramet that tells, when it ends, what the CPU time of its last measurement went into.

    python -m benchmarks.profiling FILE all --listen 127.0.0.1:0

A thread looks each few milliseconds at how much CPU time every other thread has used since the last
look, and books that on the function of ours in which the thread is. Threads that wait use none, so
they count for nothing. SIGUSR1 begins it anew: a measurement begins with one.
"""

import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType

from ramet_server.commands import main

_PAUSE_S = 0.004
_OURS = ("ramet_server", "session_service", "tree_service", "telemetry")
_SHOWN = 40


class Profile:
    """CPU time by the kind of thread and the place in our code."""

    def __init__(self) -> None:
        self._booked: Counter[tuple[str, str]] = Counter()
        self._used: dict[int, int] = {}
        self._before_ns = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, name="profile", daemon=True)

    def start(self) -> None:
        """Begins to look."""
        signal.signal(signal.SIGUSR1, lambda *_: self.begin_anew())
        self._thread.start()

    def begin_anew(self) -> None:
        """Forgets what was found so far."""
        self._booked = Counter()
        self._before_ns = self._total_ns()

    def write(self, path: Path) -> None:
        """Ends it and appends what was found to a file, as a table."""
        total = self._total_ns() - self._before_ns
        self._stop.set()
        self._thread.join()
        self._booked["gRPC's own threads", "-"] = total - sum(self._booked.values())
        with path.open("a") as file:
            file.write(f"\n{total / 1e9:.2f} s of CPU: {' '.join(sys.argv[1:])}\n\n")
            file.write("| Share | Thread | Where |\n| --- | --- | --- |\n")
            for (thread, place), used in self._booked.most_common(_SHOWN):
                file.write(f"| {used / total:.1%} | {thread} | {place} |\n")

    def _total_ns(self) -> int:
        """Returns what the process has used, but for the looking."""
        return time.process_time_ns() - (_used_ns(self._thread) or 0)

    def _look(self) -> None:
        while not self._stop.wait(_PAUSE_S):
            frames = sys._current_frames()  # noqa: SLF001 - there is no other way to it
            for thread in threading.enumerate():
                if thread is not self._thread and thread.ident in frames:
                    self._book(thread, frames[thread.ident])

    def _book(self, thread: threading.Thread, frame: FrameType) -> None:
        used = _used_ns(thread)
        if used is None or thread.ident is None:
            return
        since = used - self._used.get(thread.ident, used)
        self._used[thread.ident] = used
        if since > 0:
            self._booked[thread.name.rstrip("0123456789").rstrip("-_"), _place(frame)] += since


def _used_ns(thread: threading.Thread) -> int | None:
    """Returns the CPU time of a thread, None where it has ended."""
    try:
        # As Linux numbers the clock of a thread; pthread_getcpuclockid crashes on one that has ended.
        return time.clock_gettime_ns(~(thread.native_id or 0) << 3 | 6)
    except OSError:
        return None


def _place(frame: FrameType) -> str:
    """Returns the innermost function of ours, and what it called where that is not ours."""
    called, at = "", frame
    while True:
        module = str(at.f_globals.get("__name__", ""))
        if module.startswith(_OURS):
            beyond = f", in {called}" if called else ""
            return f"{module}.{at.f_code.co_qualname}{beyond}"
        called = module.partition(".")[0]
        if at.f_back is None:
            return f"{module}.{at.f_code.co_qualname}"
        at = at.f_back


if __name__ == "__main__":
    to = Path(sys.argv.pop(1))
    profile = Profile()
    profile.start()
    try:
        main()
    finally:
        profile.write(to)
