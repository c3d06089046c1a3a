"""Measures Ramet beside its limits: python -m benchmarks [--quick]."""

import argparse
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import driver, steps
from benchmarks.comparing import Comparison, Outcome, compare
from benchmarks.report import HEAD, lines, machine, note, write_json
from benchmarks.stand import BACKENDS, Stand
from benchmarks.wire import Wire

Part = Callable[[Stand, float], Iterator[Comparison]]

PARTS: dict[str, Part] = {
    "wire": lambda stand, seconds: Wire(stand, seconds).comparisons(),
    "driver": driver.comparisons,
    "steps": steps.comparisons,
}
"""What can be measured, in this order."""

QUICK = ("wire",)
"""What is measured in three minutes, on MariaDB only."""

_QUICK_SECONDS, _SECONDS = 1.5, 3.0
_QUICK_ROUNDS, _ROUNDS = 3, 5


def main() -> None:
    """Runs the benchmarks and prints their table; a bar that is missed is told, and is no error."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=main.__doc__)
    parser.add_argument("--quick", action="store_true", help="the calls over the wire, on MariaDB, in three minutes")
    parser.add_argument("--backend", choices=BACKENDS, action="append", help="default: each")
    parser.add_argument("--part", choices=PARTS, action="append", help="default: each")
    parser.add_argument("--case", default="", help="only cases whose name has this text in it")
    parser.add_argument("--rounds", type=int, help="how often each side is measured")
    parser.add_argument("--seconds", type=float, help="how long each measurement takes")
    parser.add_argument("--json", type=Path, help="a file for all figures")
    chosen = parser.parse_args()
    backends = chosen.backend or (["mariadb"] if chosen.quick else list(BACKENDS))
    parts = chosen.part or (list(QUICK) if chosen.quick else list(PARTS))
    rounds = chosen.rounds or (_QUICK_ROUNDS if chosen.quick else _ROUNDS)
    seconds = chosen.seconds or (_QUICK_SECONDS if chosen.quick else _SECONDS)
    outcomes: dict[str, list[Outcome]] = {}
    started, load_before = time.time(), os.getloadavg()[0]
    databases: dict[str, str] = {}
    for backend in backends:
        print(f"\n### {backend}\n\n" + "\n".join(HEAD), flush=True)
        outcomes[backend] = []
        for part in parts:
            with Stand(backend) as stand:
                databases[backend] = stand.version()
                for comparison in PARTS[part](stand, seconds):
                    if chosen.case not in comparison.name:
                        continue
                    note(f"{backend}: {comparison.name}")
                    outcome = compare(comparison, rounds)
                    outcomes[backend].append(outcome)
                    print("\n".join(lines(outcome)), flush=True)
    of = machine(", ".join(databases.values())) | {
        "load_before": load_before,
        "load_after": os.getloadavg()[0],
        "seconds": round(time.time() - started),
    }
    print("\n" + ", ".join(f"{name} {value}" for name, value in of.items()))
    if chosen.json is not None:
        write_json(chosen.json, of, outcomes)


if __name__ == "__main__":
    main()
