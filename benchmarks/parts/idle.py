"""What idle streams hold, and what stays of much that went through."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import grpc

from benchmarks import messages
from benchmarks.comparing import Sample, Side
from benchmarks.idling import IdleStreams
from benchmarks.parts.wire import put_history
from benchmarks.sides import Works
from benchmarks.stand import Server, Stand, resident_mb, thread_count
from ramet.session.v1.session_pb2_grpc import SessionStorageStub

_STREAMS = 1000
_WARM_UP, _STREAMED = 200_000, 1_000_000


@dataclass(frozen=True)
class _Growth:
    memory_mb: float
    threads: int


def works(stand: Stand) -> Works:
    """Returns what is measured of the server's process; nothing is compared."""

    @cache
    def server() -> Server:
        started = stand.ramet(stand.new_database())
        with grpc.insecure_channel(started.address) as channel:
            for session_id in messages.SESSIONS:
                put_history(SessionStorageStub(channel), session_id, 1)
        return started

    @cache
    def of_idle_streams() -> _Growth:
        pids = server().pids
        # All that is made once is made by a few streams.
        with IdleStreams(server().address, 10):
            memory, threads = resident_mb(pids), thread_count(pids)
        with IdleStreams(server().address, _STREAMS):
            return _Growth(resident_mb(pids) - memory, thread_count(pids) - threads)

    def streamed() -> float:
        pids = server().pids
        with grpc.insecure_channel(server().address) as channel:
            stub = SessionStorageStub(channel)
            put_history(stub, "much", _WARM_UP)
            before = resident_mb(pids)
            put_history(stub, "much", _STREAMED)
            return resident_mb(pids) - before

    def figure(name: str, measure: Callable[[], float]) -> Callable[[int], Sequence[Side]]:
        return lambda _: [Side(name, lambda: Sample(measure()))]

    return {
        "memory": figure("Ramet", lambda: of_idle_streams().memory_mb),
        "threads": figure("Ramet", lambda: of_idle_streams().threads),
        "streamed": figure("Ramet", streamed),
    }
