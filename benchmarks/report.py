"""What a run found, as a table for people and as JSON for programs."""

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.comparing import Bar, Outcome, Spread

_PACKAGES = ("grpcio", "protobuf", "SQLAlchemy", "PyMySQL")


def machine(database: str) -> dict[str, Any]:
    """Tells on what a run takes place; ``database`` is its name and version."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "database": database,
        **{name: version(name) for name in _PACKAGES},
    }


def number(value: float) -> str:
    """Writes a figure with about three digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def lines(outcome: Outcome) -> list[str]:
    """Returns the lines of the table for one comparison."""
    compared = outcome.comparison
    told = []
    for name, spread in outcome.values.items():
        cpu = ", ".join(f"{user} {used:.0f}" for user, used in outcome.cpu_us[name].items())
        bar = compared.bar if name == compared.sides[0].name else None
        told.append(_line(compared.name, name, f"{number(spread.median)} {compared.unit}", _range(spread), bar, spread))
        told[-1] += f" {cpu} |"
    for ratio, spread in outcome.ratios:
        what = f"{ratio.over} / {ratio.under}"
        told.append(_line(compared.name, what, f"**{spread.median:.2f}**", _range(spread), ratio.bar, spread) + " |")
    return told


def _line(name: str, what: str, value: str, spread: str, bar: Bar | None, values: Spread) -> str:
    judged = "" if bar is None else f"{bar} {'reached' if bar.holds(values.median) else '**missed**'}"
    return f"| {name} | {what} | {value} | {spread} | {judged} |"


def _range(spread: Spread) -> str:
    return f"{number(spread.least)} to {number(spread.most)}"


HEAD = (
    "| Case | Side or ratio | Median | Spread | Bar | CPU us a call |",
    "| --- | --- | --- | --- | --- | --- |",
)
"""The head of the table."""


def write_json(path: Path, of: Mapping[str, Any], outcomes: Mapping[str, Sequence[Outcome]]) -> None:
    """Writes all figures of a run, by backend."""
    told = {backend: [_entry(outcome) for outcome in several] for backend, several in outcomes.items()}
    path.write_text(json.dumps({"machine": of, "results": told}, indent=2) + "\n")


def _entry(outcome: Outcome) -> dict[str, Any]:
    compared = outcome.comparison
    ratios = [
        {
            "ratio": f"{ratio.over} / {ratio.under}",
            **asdict(spread),
            **({} if ratio.bar is None else {"bar": str(ratio.bar), "reached": ratio.bar.holds(spread.median)}),
        }
        for ratio, spread in outcome.ratios
    ]
    own = outcome.values[compared.sides[0].name].median
    return {
        "point": compared.point,
        "case": compared.name,
        "unit": compared.unit,
        "sides": {name: {**asdict(spread), "cpu_us": outcome.cpu_us[name]} for name, spread in outcome.values.items()},
        "ratios": ratios,
        **({} if compared.bar is None else {"bar": str(compared.bar), "reached": compared.bar.holds(own)}),
    }


def note(text: str) -> None:
    """Tells people how far a run is."""
    print(text, file=sys.stderr, flush=True)
