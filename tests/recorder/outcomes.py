"""Prints what becomes of events while a server is absent, black-holed, restarted twice, and slow.

``python -m tests.recorder.outcomes [EVENTS]``. Lost is what was recorded and is neither acknowledged, nor refused, nor
dropped and counted, nor in the spool at the end: it must be 0.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from ramet.recorder import Limits, Recorder, Report
from tests.recorder.black_hole import BlackHole
from tests.recorder.taking import TakingServer

_LIMITS = Limits(first_backoff_s=0.05, longest_backoff_s=0.2, queue_bytes=4 << 20)


def measure(events: int, folder: Path) -> dict[str, tuple[Report, int]]:
    """Returns for each kind of server what the recorder reports, and how many events the server has."""
    return {
        "absent": _absent(events, folder / "absent"),
        "black-holed": _black_holed(events, folder / "black-holed"),
        "restarted twice": _restarted(events, folder / "restarted"),
        "slow": _slow(events, folder / "slow"),
    }


def lost(recorded: int, report: Report) -> int:
    """Counts what nobody can account for."""
    return recorded - report.acked - report.rejected - report.dropped - report.spooled


def _record(recorder: Recorder, events: int) -> None:
    for number in range(events // 2):
        with recorder.diagnosis(f"question {number}"):
            pass


def _absent(events: int, folder: Path) -> tuple[Report, int]:
    with TakingServer() as server:
        server.stop()
        recorder = Recorder(server.address, spool=folder, limits=_LIMITS)
        _record(recorder, events)
        return recorder.close(5), len(server.events)


def _black_holed(events: int, folder: Path) -> tuple[Report, int]:
    with BlackHole() as hole:
        recorder = Recorder(hole.address, spool=folder, limits=_LIMITS)
        _record(recorder, events)
        return recorder.close(5), 0


def _restarted(events: int, folder: Path) -> tuple[Report, int]:
    with TakingServer() as server:
        recorder = Recorder(server.address, spool=folder, limits=_LIMITS)
        for part in range(4):
            _record(recorder, events // 4)
            if part in (1, 2):
                server.stop()
                Event().wait(0.5)
                server.start()
        recorder.flush(60)
        return recorder.close(10), len(server.events)


def _slow(events: int, folder: Path) -> tuple[Report, int]:
    with TakingServer() as server:
        server.delay_s, server.credit_bytes = 0.05, 32_768
        recorder = Recorder(server.address, spool=folder, limits=_LIMITS)
        _record(recorder, events)
        return recorder.close(3), len(server.events)


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def main(tell: Callable[[str], object] = print) -> None:
    """Prints the table."""
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    tell("server            recorded at server   acked  spooled  on disk  dropped  lost")
    with _folder() as folder:
        for name, (report, arrived) in measure(events, folder).items():
            tell(
                f"{name:16} {events:9} {arrived:9} {report.acked:7} {report.ever_spooled:8} {report.spooled:8}"
                f" {report.dropped:8} {lost(events, report):5}"
            )


if __name__ == "__main__":
    main()
