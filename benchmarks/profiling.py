"""A server of Ramet that tells, when it ends, what its CPU time went into.

    python -m benchmarks.profiling FILE all --listen 127.0.0.1:0

A thread looks each two milliseconds at how much CPU time every other thread has used since the last
look, and books that on the function of ours in which the thread is. Threads that wait use none, so
they count for nothing. What gRPC uses on threads of its own, and the thread that looks, are lines of
their own. The figures are shares: the looking itself slows the server.
"""

import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType

from ramet_server.commands import main

_PAUSE_S = 0.002
_OURS = ("ramet_server", "session_service", "tree_service", "telemetry")
_SHOWN = 40

Booked = Counter[tuple[str, str]]


class Profile:
    """CPU time by the kind of thread and the place in our code."""

    def __init__(self) -> None:
        self._booked: Booked = Counter()
        self._used: dict[int, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, name="profile", daemon=True)

    def start(self) -> None:
        """Begins to look."""
        self._thread.start()

    def write(self, path: Path) -> None:
        """Ends it and appends what was found to a file, as a table."""
        self._stop.set()
        self._thread.join()
        total = time.process_time()
        seen = sum(self._booked.values()) / 1e9
        self._booked["gRPC's own threads, and all before", "-"] = round((total - seen) * 1e9)
        with path.open("a") as file:
            file.write(f"\n{total:.1f} s of CPU: {' '.join(sys.argv[1:])}\n\n")
            file.write("| Share | Thread | Where |\n| --- | --- | --- |\n")
            for (thread, place), used in self._booked.most_common(_SHOWN):
                file.write(f"| {used / 1e7 / total:.1f} % | {thread} | {place} |\n")

    def _look(self) -> None:
        own = threading.get_ident()
        while not self._stop.wait(_PAUSE_S):
            frames = sys._current_frames()  # noqa: SLF001 - there is no other way to it
            for thread in threading.enumerate():
                if thread.ident in frames:
                    place = "the profile itself" if thread.ident == own else _place(frames[thread.ident])
                    self._book(thread, place)

    def _book(self, thread: threading.Thread, place: str) -> None:
        ident = thread.native_id or 0
        try:
            # As Linux numbers the clock of a thread; pthread_getcpuclockid crashes on one that has ended.
            used = time.clock_gettime_ns(~ident << 3 | 6)
        except OSError:
            return
        since = used - self._used.get(ident, used)
        self._used[ident] = used
        if since > 0:
            self._booked[thread.name.rstrip("0123456789").rstrip("-_"), place] += int(since)


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
    profile = Profile()
    profile.start()
    to = Path(sys.argv.pop(1))
    try:
        main()
    finally:
        profile.write(to)
