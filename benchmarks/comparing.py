"""Comparisons: sides that are measured in turn, and the ratios between them."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.cases import Case, Ratio


@dataclass(frozen=True)
class Sample:
    """One measurement of one side."""

    value: float
    cpu_us: Mapping[str, float] = field(default_factory=dict)
    """CPU time for each call, by who used it: server, database, client."""


@dataclass(frozen=True)
class Side:
    """One of those compared."""

    name: str
    measure: Callable[[], Sample]


@dataclass(frozen=True)
class Spread:
    """Several measurements of one thing."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Returns the spread of some values, at least one."""
        return cls(statistics.median(values), min(values), max(values))


@dataclass(frozen=True)
class Outcome:
    """What a case came to."""

    case: Case
    values: Mapping[str, Spread]
    cpu_us: Mapping[str, Mapping[str, float]]
    """Medians, by side and user."""
    ratios: Sequence[tuple[Ratio, Spread]]
    """Each the ratio within a round, over all rounds."""


def compare(case: Case, sides: Sequence[Side], rounds: int) -> Outcome:
    """Measures all sides in turn, and returns medians and spreads."""
    samples: dict[str, list[Sample]] = {side.name: [] for side in sides}
    for _ in range(case.rounds or rounds):
        for side in sides:
            samples[side.name].append(side.measure())
    values = {name: [sample.value for sample in several] for name, several in samples.items()}
    ratios = []
    for ratio in case.ratios:
        pairs = zip(values[ratio.over], values[ratio.under], strict=True)
        ratios.append((ratio, Spread.of([over / under for over, under in pairs])))
    cpu = {
        name: {user: statistics.median(each.cpu_us[user] for each in several) for user in several[0].cpu_us}
        for name, several in samples.items()
    }
    return Outcome(case, {name: Spread.of(several) for name, several in values.items()}, cpu, ratios)
