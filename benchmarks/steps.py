"""Telemetry steps over streams, against a server that stores them by the driver alone."""

from collections.abc import Iterator

from benchmarks import telling
from benchmarks.bare.serving import METHOD
from benchmarks.comparing import Comparison, Ratio, Sample, Side, at_least
from benchmarks.stand import Server, Stand, cpu_seconds

_CASES = ((1, 32, 0.25), (4, 32, None), (1, 1, None))
"""Streams at once, steps in a message, and the bar where there is one."""


def comparisons(stand: Stand, seconds: float) -> Iterator[Comparison]:
    """Yields what is compared of telemetry."""
    ramet = stand.ramet(stand.new_database(), "telemetry")
    bare = stand.bare("steps", "--database", stand.new_database())

    def side(name: str, server: Server, method: str, streams: int, steps: int) -> Side:
        return Side(name, lambda: _measure(stand, server, method, streams, steps, seconds))

    for streams, steps, bar in _CASES:
        yield Comparison(
            5,
            f"telemetry steps, {steps} in a message, {streams} {'stream' if streams == 1 else 'streams'}",
            "steps/s",
            [
                side("Ramet", ramet, telling.METHOD, streams, steps),
                side("bare steps", bare, METHOD, streams, steps),
            ],
            [Ratio("Ramet", "bare steps", at_least(bar) if bar and stand.backend == "mariadb" else None)],
        )


def _measure(stand: Stand, server: Server, method: str, streams: int, steps: int, seconds: float) -> Sample:
    processes = {"server": server.pid}
    if stand.database_pid is not None:
        processes["database"] = stand.database_pid
    before = {user: cpu_seconds(pid) for user, pid in processes.items()}
    told = telling.tell(server.address, method, streams, steps, seconds)
    used = {user: (cpu_seconds(pid) - before[user]) / told.steps * 1e6 for user, pid in processes.items()}
    return Sample(told.steps_per_second, used | {"client": told.client_cpu_us})
