"""Telemetry steps over streams, against a server that stores them by the driver alone."""

from collections.abc import Sequence
from functools import cache

from benchmarks import telling
from benchmarks.comparing import Sample, Side
from benchmarks.sides import BARE, TELEMETRY, Works
from benchmarks.stand import Server, Stand, cpu_seconds


def works(stand: Stand) -> Works:
    """Returns what is compared; each side has a database of its own. The amount is streams at once."""

    @cache
    def ramet() -> Server:
        return stand.ramet(stand.new_database(), "telemetry")

    @cache
    def bare() -> Server:
        return stand.bare("steps", "--database", stand.new_database())

    def measure(server: Server, method: str, streams: int, steps: int) -> Sample:
        processes = {"server": server.pids} | ({"database": stand.database_pids} if stand.database_pids else {})
        before = {user: cpu_seconds(pids) for user, pids in processes.items()}
        told = telling.tell(server.address, method, streams, steps, stand.seconds)
        used = {user: (cpu_seconds(pids) - before[user]) / told.steps * 1e6 for user, pids in processes.items()}
        return Sample(told.steps_per_second, used | {"client": told.client_cpu_us})

    def sides(streams: int, steps: int) -> Sequence[Side]:
        return [
            Side("Ramet", lambda: measure(ramet(), f"{TELEMETRY}/StreamEvents", streams, steps)),
            Side("bare steps", lambda: measure(bare(), BARE, streams, steps)),
        ]

    return {"32 a message": lambda streams: sides(streams, 32), "1 a message": lambda streams: sides(streams, 1)}
