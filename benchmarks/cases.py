"""What is measured, and the bars: the one table that a run goes through."""

from dataclasses import dataclass


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


BOTH = ("mariadb", "sqlite")
"""Every backend."""

CALLS, MS = "calls/s", "ms a call"


@dataclass(frozen=True)
class Case:
    """Sides that are measured A B A B, so that what disturbs the machine disturbs them all."""

    name: str
    part: str
    """Which module of ``benchmarks.parts`` measures it."""
    work: str
    """What that module does for it."""
    amount: int = 0
    """How much of it: calls in flight, unless the work says otherwise."""
    unit: str = CALLS
    ratios: tuple[Ratio, ...] = ()
    bar: Bar | None = None
    """Of each side's own figure, where that is what counts."""
    backends: tuple[str, ...] = BOTH
    quick: bool = False
    """Whether ``make bench-quick`` measures it, on MariaDB."""
    rounds: int | None = None
    """How often each side is measured, where it is not as often as all others."""


def _append(in_flight: int, of_append: Bar | None, of_echo: Bar | None) -> Case:
    ratios = (Ratio("Ramet", "bare append", of_append), Ratio("Ramet", "bare echo", of_echo))
    return Case(f"append, {in_flight} in flight", "wire", "append", in_flight, ratios=ratios, quick=True)


def _by_key(work: str) -> Case:
    ratios = (Ratio("Ramet", "bare echo", at_least(0.60)),)
    return Case(f"{work} by key, 16 in flight", "wire", work, 16, ratios=ratios, quick=True)


def _history(in_flight: int) -> Case:
    ratios = (Ratio("Ramet", "bare history", at_least(0.80)),)
    name = f"history of 1,000 records, {in_flight} in flight"
    return Case(name, "wire", "history", in_flight, ratios=ratios, quick=True)


def _driver(name: str, work: str) -> Case:
    return Case(f"driver alone: {name}", "driver", work, unit="a second")


def _grown(name: str, part: str, work: str, over: str, under: str, limit: float, unit: str = MS) -> Case:
    ratios = (Ratio(over, under, at_most(limit)),)
    return Case(name, part, work, unit=unit, ratios=ratios, backends=("mariadb",))


def _listing(name: str, work: str) -> Case:
    return _grown(f"list 50 sessions {name}", "listing", work, "of 100,000", "of 1,000", 1.5)


def _steps(work: str, streams: int, bar: Bar | None = None) -> Case:
    ratios = (Ratio("Ramet", "bare steps", bar),)
    name = f"telemetry steps, {work}, streams: {streams}"
    return Case(name, "steps", work, streams, unit="steps/s", ratios=ratios, backends=("mariadb",) if bar else BOTH)


def _recorder(name: str, work: str, bar: Bar | None) -> Case:
    return Case(f"recorder: {name}", "recorder", work, unit="us a call", bar=bar, backends=("mariadb",))


def _workers(name: str, work: str) -> Case:
    ratios = (Ratio("2 workers", "1 worker"),)
    return Case(f"{name} by workers, 64 in flight", "replicas", work, 64, ratios=ratios, backends=("mariadb",))


def _once(name: str, part: str, work: str, unit: str, bar: Bar) -> Case:
    return Case(name, part, work, unit=unit, bar=bar, backends=("mariadb",), rounds=1)


CASES = (
    _append(1, at_least(0.75), None),
    _append(16, None, None),
    _append(64, at_least(0.70), at_least(0.55)),
    Case(
        "append of 16 records, 16 in flight",
        "wire",
        "append16",
        16,
        ratios=(Ratio("Ramet", "bare append", at_least(0.60)),),
        quick=True,
    ),
    _by_key("slot"),
    _by_key("session"),
    _history(1),
    _history(16),
    Case("context of 1,000 records, 1 in flight", "wire", "context", 1, ratios=(Ratio("Ramet", "bare history"),)),
    _driver("insert of one row and commit", "insert"),
    _driver("insert of 64 rows and commit", "insert64"),
    _driver("row by key", "by key"),
    _driver("history of 1,000 rows", "history"),
    _grown("append by length of the session", "histories", "append", "100,000 records", "10 records", 1.1),
    _grown("fork by length of the session", "histories", "fork", "100,000 records", "10 records", 1.1),
    _grown("history of 1,000 records by forks", "histories", "chain", "end of 1,000 forks", "one session", 1.5),
    _listing("by id", "id"),
    _listing("by id, descending", "id descending"),
    _listing("by creation", "created_at"),
    _listing("by creation, descending", "created_at descending"),
    _listing("by activity", "last_active_at"),
    _listing("by activity, descending", "last_active_at descending"),
    _listing("of a status", "status"),
    _listing("of a tag", "tag"),
    _listing("of two tags", "two tags"),
    _listing("of a label's beginning", "label"),
    _listing("of a time of creation", "created"),
    _listing("of a time of activity", "active"),
    _grown("digests, queries for each 1,000", "listing", "digests", "of 10,000", "of 1,000", 1.1, "queries"),
    _grown("digests, time for each 1,000", "listing", "digest time", "of 10,000", "of 1,000", 1.5, "ms"),
    _grown("whole tree, time for each 1,000 nodes", "listing", "tree", "of 100,000", "of 10,000", 1.5, "ms"),
    _grown("whole tree, peak memory of the server", "listing", "tree memory", "of 100,000", "of 10,000", 1.5, "MB"),
    _grown("decision chain by steps stored", "answers", "chain", "1,000,000 steps", "10,000 steps", 1.5),
    _grown("hourly measure of a day by steps stored", "answers", "hourly", "1,000,000 steps", "10,000 steps", 1.5),
    _steps("32 a message", 1, at_least(0.25)),
    _steps("32 a message", 4),
    _steps("1 a message", 1),
    _recorder("before_model", "before_model", at_most(20)),
    _recorder("before_model, after a pause", "first", None),
    _recorder("after_model", "after_model", at_most(20)),
    _recorder("a recorded tool", "tool", at_most(20)),
    _once("1,000 idle watchers and 1,000 idle streams: memory", "idle", "memory", "MB more", at_most(60)),
    _once("1,000 idle watchers and 1,000 idle streams: threads", "idle", "threads", "threads more", at_most(0)),
    _once("a million records streamed through: what stays", "idle", "streamed", "MB more", at_most(5)),
    _workers("append", "append"),
    _workers("slot", "slot"),
)
"""Every case, in the order of a run."""
