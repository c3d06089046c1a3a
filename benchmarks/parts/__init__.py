"""What measures the cases: each module has ``works``, which tells what it can do on a stand."""

from collections.abc import Callable
from importlib import import_module

from benchmarks.cases import CASES
from benchmarks.sides import Works
from benchmarks.stand import Stand

NAMES = tuple(dict.fromkeys(case.part for case in CASES))
"""The modules here, in the order of a run."""


def works_of(part: str) -> Callable[[Stand], Works]:
    """Returns what tells the works of a part; nothing is started before a work is called."""
    works: Callable[[Stand], Works] = import_module(f"benchmarks.parts.{part}").works
    return works


__all__ = ["NAMES", "works_of"]
