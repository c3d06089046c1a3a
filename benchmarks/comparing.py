"""Comparisons: sides that are measured in turn, and the ratios between them with their bars."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


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
class Bar:
    """What a ratio, or a figure, must reach or keep under."""

    limit: float
    at_least: bool

    def holds(self, value: float) -> bool:
        """Tells whether a value is within it."""
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.limit:g}"


def at_least(limit: float) -> Bar:
    """Returns a bar to reach."""
    return Bar(limit, at_least=True)


def at_most(limit: float) -> Bar:
    """Returns a bar to keep under."""
    return Bar(limit, at_least=False)


@dataclass(frozen=True)
class Ratio:
    """One side over another."""

    over: str
    under: str
    bar: Bar | None = None


@dataclass(frozen=True)
class Comparison:
    """Sides that are measured A B A B, so that what disturbs the machine disturbs them all."""

    point: int
    """The point of docs/performance.md that it belongs to."""
    name: str
    unit: str
    sides: Sequence[Side]
    ratios: Sequence[Ratio] = ()
    bar: Bar | None = None
    """Of the first side's own figure, where that is what counts."""
    rounds: int | None = None
    """How often each side is measured, where it is not as often as all others."""


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
    """What a comparison came to."""

    comparison: Comparison
    values: Mapping[str, Spread]
    cpu_us: Mapping[str, Mapping[str, float]]
    """Medians, by side and user."""
    ratios: Sequence[tuple[Ratio, Spread]]
    """Each the ratio within a round, over all rounds."""


def compare(comparison: Comparison, rounds: int) -> Outcome:
    """Measures all sides in turn, and returns medians and spreads."""
    samples: dict[str, list[Sample]] = {side.name: [] for side in comparison.sides}
    for _ in range(comparison.rounds or rounds):
        for side in comparison.sides:
            samples[side.name].append(side.measure())
    values = {name: [sample.value for sample in several] for name, several in samples.items()}
    ratios = []
    for ratio in comparison.ratios:
        pairs = zip(values[ratio.over], values[ratio.under], strict=True)
        ratios.append((ratio, Spread.of([over / under for over, under in pairs])))
    cpu = {
        name: {user: statistics.median(each.cpu_us[user] for each in several) for user in several[0].cpu_us}
        for name, several in samples.items()
    }
    return Outcome(comparison, {name: Spread.of(several) for name, several in values.items()}, cpu, ratios)
