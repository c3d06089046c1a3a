"""Sides of a comparison that are calls of a server."""

from collections.abc import Callable, Mapping, Sequence

from benchmarks.bare.serving import METHOD as BARE
from benchmarks.calling import Load, load
from benchmarks.comparing import Sample, Side
from benchmarks.messages import Messages
from benchmarks.stand import Server, Stand, cpu_seconds

Works = Mapping[str, Callable[[int], Sequence[Side]]]
"""What a part can do, by the names that cases use; each takes the case's amount."""

SESSIONS = "/ramet.session.v1.SessionStorage"
TREE = "/ramet.tree.v1.SessionTree"
TELEMETRY = "/ramet.telemetry.v1.Telemetry"

__all__ = ["BARE", "SESSIONS", "TELEMETRY", "TREE", "Works", "called", "timed"]


def called(
    stand: Stand, name: str, server: Server, method: str, messages: Messages, in_flight: int, *, connections: int = 1
) -> Side:
    """Returns a side whose figure is calls a second."""

    def measure() -> Sample:
        found, cpu = _measured(stand, server, method, messages, in_flight, connections)
        return Sample(found.calls_per_second, cpu)

    return Side(name, measure)


def timed(stand: Stand, name: str, server: Server, method: str, messages: Messages) -> Side:
    """Returns a side whose figure is the median time of a call in milliseconds, one at a time."""

    def measure() -> Sample:
        found, cpu = _measured(stand, server, method, messages, 1, 1)
        return Sample(found.p50_ms, cpu)

    return Side(name, measure)


def _measured(
    stand: Stand, server: Server, method: str, messages: Messages, in_flight: int, connections: int
) -> tuple[Load, Mapping[str, float]]:
    processes = {"server": server.pids} | ({"database": stand.database_pids} if stand.database_pids else {})
    server.measurement_begins()
    before = {user: cpu_seconds(pids) for user, pids in processes.items()}
    found = load(server.address, method, messages, in_flight, stand.seconds, connections)
    used = {user: (cpu_seconds(pids) - before[user]) / found.calls * 1e6 for user, pids in processes.items()}
    return found, used | {"client": found.client_cpu_us}
