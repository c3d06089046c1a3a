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

from benchmarks.cases import Bar
from benchmarks.comparing import Outcome, Spread

_PACKAGES = ("grpcio", "protobuf", "SQLAlchemy", "PyMySQL")

HEAD = (
    "| Case | Side or ratio | Median | Spread | Bar | CPU us a call |",
    "| --- | --- | --- | --- | --- | --- |",
)
"""The head of the table."""


def machine(databases: Sequence[str]) -> dict[str, Any]:
    """Tells on what a run takes place; ``databases`` are their names and versions."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "Python": platform.python_version(),
        "databases": ", ".join(databases),
        **{name: version(name) for name in _PACKAGES},
    }


def number(value: float) -> str:
    """Writes a figure with about three digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def lines(outcome: Outcome) -> list[str]:
    """Returns the lines of the table for one case."""
    case = outcome.case
    told = []
    for name, spread in outcome.values.items():
        cpu = ", ".join(f"{user} {used:,.0f}" for user, used in outcome.cpu_us[name].items())
        value = f"{number(spread.median)} {case.unit}"
        told.append(_line(case.name, name, value, _range(spread), _judged(case.bar, spread), cpu))
    for ratio, spread in outcome.ratios:
        what = f"{ratio.over} / {ratio.under}"
        value = f"**{spread.median:.2f}**"
        told.append(_line(case.name, what, value, _range(spread), _judged(ratio.bar, spread), ""))
    return told


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _judged(bar: Bar | None, spread: Spread) -> str:
    return "" if bar is None else f"{bar} {'reached' if bar.holds(spread.median) else '**missed**'}"


def _range(spread: Spread) -> str:
    return f"{number(spread.least)} to {number(spread.most)}"


def count_bars(outcomes: Sequence[Outcome]) -> tuple[int, int]:
    """Returns how many bars were reached, and how many there are."""
    judged = [word for outcome in outcomes for line in lines(outcome) if (word := line.split(" | ")[4])]
    return sum(word.endswith(" reached") for word in judged), len(judged)


def to_json(of: Mapping[str, Any], outcomes: Mapping[str, Sequence[Outcome]]) -> str:
    """Returns all figures of a run, by backend."""
    told = {backend: [_entry(outcome) for outcome in several] for backend, several in outcomes.items()}
    return json.dumps({"run": of, "results": told}, indent=2) + "\n"


def write(json_to: Path | None, table_to: Path | None, of: Mapping[str, Any], results: Mapping[str, Any]) -> None:
    """Writes the files that were asked for."""
    if json_to is not None:
        json_to.write_text(to_json(of, results))
    if table_to is not None:
        parts = [about(of)]
        for backend, outcomes in results.items():
            rows = [line for outcome in outcomes for line in lines(outcome)]
            parts.append("\n".join((f"### {backend}", "", *HEAD, *rows)))
        table_to.write_text("\n\n".join(parts) + "\n")


def about(of: Mapping[str, Any]) -> str:
    """Returns on what a run took place, in one line."""
    return ", ".join(f"{name} {value}" for name, value in of.items())


def _entry(outcome: Outcome) -> dict[str, Any]:
    case = outcome.case
    sides = {
        name: {**asdict(spread), "cpu_us": outcome.cpu_us[name], **_bar_entry(case.bar, spread)}
        for name, spread in outcome.values.items()
    }
    ratios = [
        {"over": ratio.over, "under": ratio.under, **asdict(spread), **_bar_entry(ratio.bar, spread)}
        for ratio, spread in outcome.ratios
    ]
    return {"case": case.name, "unit": case.unit, "sides": sides, "ratios": ratios}


def _bar_entry(bar: Bar | None, spread: Spread) -> dict[str, Any]:
    return {} if bar is None else {"bar": str(bar), "reached": bar.holds(spread.median)}


def note(text: str) -> None:
    """Tells people how far a run is."""
    print(text, file=sys.stderr, flush=True)
