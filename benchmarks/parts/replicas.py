"""One worker against two on one port."""

from collections.abc import Sequence
from functools import cache

from benchmarks import messages
from benchmarks.comparing import Side
from benchmarks.messages import Messages
from benchmarks.parts.wire import fill
from benchmarks.sides import SESSIONS, Works, called
from benchmarks.stand import Server, Stand

# The kernel spreads connections, not calls: enough of them that each worker gets its share.
_CONNECTIONS = 16


def works(stand: Stand) -> Works:
    """Returns what is compared; each side has a database of its own."""

    @cache
    def server(workers: int) -> Server:
        started = stand.ramet(stand.new_database(), "all", "--workers", str(workers))
        fill(started.address)
        return started

    def sides(method: str, sent: Messages, in_flight: int) -> Sequence[Side]:
        return [
            called(stand, name, server(workers), f"{SESSIONS}/{method}", sent, in_flight, connections=_CONNECTIONS)
            for name, workers in (("2 workers", 2), ("1 worker", 1))
        ]

    return {
        "append": lambda in_flight: sides("AppendRecords", messages.appends(), in_flight),
        "slot": lambda in_flight: sides("GetMemory", messages.SLOTS, in_flight),
    }
