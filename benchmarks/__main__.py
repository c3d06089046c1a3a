"""Measures Ramet beside its limits: python -m benchmarks [--quick]."""

import argparse
import os
import time
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import parts, report
from benchmarks.cases import CASES, Case
from benchmarks.comparing import Outcome, compare
from benchmarks.stand import BACKENDS, Stand

_QUICK_SECONDS, _SECONDS = 1.0, 2.0
_QUICK_ROUNDS, _ROUNDS = 3, 5


def main() -> int:
    """Runs the benchmarks and prints their table.

    A bar that is missed is told, and is no error; the exit code is 1 where something could not be measured.
    """
    chosen = _arguments()
    cases = [case for case in CASES if chosen.case in case.name and (case.quick or not chosen.quick)]
    backends = chosen.backend or (["mariadb"] if chosen.quick else list(BACKENDS))
    run = Run(
        chosen.rounds or (_QUICK_ROUNDS if chosen.quick else _ROUNDS),
        chosen.seconds or (_QUICK_SECONDS if chosen.quick else _SECONDS),
        chosen.profile,
    )
    for backend in backends:
        run.go_through(backend, [case for case in cases if backend in case.backends])
    of = run.about()
    reached, bars = report.count_bars([outcome for several in run.outcomes.values() for outcome in several])
    print(f"\n{report.about(of)}\n{reached} of {bars} bars reached, {run.failed} cases failed to run.", flush=True)
    report.write(chosen.json, chosen.table, of, run.outcomes)
    return 1 if run.failed else 0


class Run:
    """One run of some cases, and what it found so far."""

    def __init__(self, rounds: int, seconds: float, profile: Path | None = None) -> None:
        """Takes how often and for how long each side is measured, and where profiles go."""
        self.outcomes: dict[str, list[Outcome]] = {}
        self.failed = 0
        self._rounds, self._seconds, self._profile = rounds, seconds, profile
        self._databases: list[str] = []
        self._started, self._load = datetime.now(UTC), os.getloadavg()[0]
        self._clock = time.monotonic()

    def go_through(self, backend: str, cases: Sequence[Case]) -> None:
        """Measures cases on one backend and prints their rows."""
        print(f"\n### {backend}\n\n" + "\n".join(report.HEAD), flush=True)
        outcomes = self.outcomes.setdefault(backend, [])
        for part in parts.NAMES:
            own = [case for case in cases if case.part == part]
            if not own:
                continue
            with Stand(backend, seconds=self._seconds, profile=self._profile) as stand:
                if stand.version() not in self._databases:
                    self._databases.append(stand.version())
                works = parts.works_of(part)(stand)
                for case in own:
                    report.note(f"{backend}: {case.name}")
                    try:
                        outcome = compare(case, works[case.work](case.amount), self._rounds)
                    except Exception:  # noqa: BLE001 - whatever it is, the other cases are measured, and the run fails
                        self.failed += 1
                        report.note(traceback.format_exc())
                        print(f"| {case.name} | **failed to run** | | | | |", flush=True)
                        continue
                    outcomes.append(outcome)
                    print("\n".join(report.lines(outcome)), flush=True)

    def about(self) -> dict[str, object]:
        """Tells on what the run took place."""
        return report.machine(self._databases) | {
            "started": self._started.strftime("%Y-%m-%d %H:%M UTC"),
            "load at start": round(self._load, 2),
            "load at end": round(os.getloadavg()[0], 2),
            "seconds": round(time.monotonic() - self._clock),
        }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=main.__doc__)
    parser.add_argument("--quick", action="store_true", help="the calls over the wire, on MariaDB, in three minutes")
    parser.add_argument("--backend", choices=BACKENDS, action="append", help="default: each")
    parser.add_argument("--case", default="", metavar="TEXT", help="only cases whose name has this text in it")
    parser.add_argument("--rounds", type=int, help="how often each side is measured")
    parser.add_argument("--seconds", type=float, help="how long each measurement takes")
    parser.add_argument("--json", type=Path, help="a file for all figures")
    parser.add_argument("--table", type=Path, help="a file for the table, in Markdown")
    parser.add_argument(
        "--profile", type=Path, help="a file for what the CPU time of Ramet's servers went into; it slows them"
    )
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
