"""Calls over the wire against servers that do one thing only."""

from collections.abc import Iterator

import grpc

from benchmarks import calling
from benchmarks.bare.serving import METHOD
from benchmarks.comparing import Comparison, Ratio, Sample, Side, at_least
from benchmarks.stand import Server, Stand, cpu_seconds
from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub

_SERVICE = "/ramet.session.v1.SessionStorage"

_HISTORY_RECORDS = 1000


class Wire:
    """Ramet and the bare servers over one database server."""

    def __init__(self, stand: Stand, seconds: float) -> None:
        """Starts all servers and fills Ramet's database; each measurement takes ``seconds``."""
        self._stand = stand
        self._seconds = seconds
        url = stand.new_database()
        self._ramet = stand.ramet(url, "session")
        self._echo = stand.bare("echo")
        self._appends = stand.bare("appends", "--database", stand.new_database())
        self._fill()
        self._history = stand.bare("history", "--database", url)

    def comparisons(self) -> Iterator[Comparison]:
        """Yields what is compared over the wire."""
        for in_flight in (1, 16, 64):
            ours = self._side("Ramet", self._ramet, "AppendRecords", "append", in_flight)
            bare = self._side("bare append", self._appends, None, "append", in_flight)
            echo = self._side("bare echo", self._echo, None, "echo", in_flight)
            bars = {1: (0.75, None), 16: (None, None), 64: (0.70, 0.55)}[in_flight]
            ratios = [
                Ratio("Ramet", under, None if bar is None else at_least(bar))
                for under, bar in zip(("bare append", "bare echo"), bars, strict=True)
            ]
            yield Comparison(2, f"append, {in_flight} in flight", "calls/s", [ours, bare, echo], ratios)
        yield Comparison(
            2,
            "append of 16 records, 16 in flight",
            "calls/s",
            [
                self._side("Ramet", self._ramet, "AppendRecords", "append16", 16),
                self._side("bare append", self._appends, None, "append16", 16),
            ],
            [Ratio("Ramet", "bare append", at_least(0.60))],
        )
        for kind, method in (("slot", "GetMemory"), ("session", "GetSession")):
            yield Comparison(
                3,
                f"{kind} by key, 16 in flight",
                "calls/s",
                [
                    self._side("Ramet", self._ramet, method, kind, 16),
                    self._side("bare echo", self._echo, None, "echo", 16),
                ],
                [Ratio("Ramet", "bare echo", at_least(0.60))],
            )
        for in_flight in (1, 16):
            yield Comparison(
                3,
                f"history of 1,000 records, {in_flight} in flight",
                "calls/s",
                [
                    self._side("Ramet", self._ramet, "ListRecords", "history", in_flight),
                    self._side("bare history", self._history, None, "history", in_flight),
                ],
                [Ratio("Ramet", "bare history", at_least(0.80))],
            )
        yield Comparison(
            3,
            "context of 1,000 records, 1 in flight",
            "calls/s",
            [
                self._side("Ramet", self._ramet, "GetContext", "context", 1),
                self._side("bare history", self._history, None, "history", 1),
            ],
            [Ratio("Ramet", "bare history")],
        )

    def _side(self, name: str, server: Server, method: str | None, kind: str, in_flight: int) -> Side:
        path = METHOD if method is None else f"{_SERVICE}/{method}"
        return Side(name, lambda: self._measure(server, path, kind, in_flight))

    def _measure(self, server: Server, method: str, kind: str, in_flight: int) -> Sample:
        processes = {"server": server.pid}
        if self._stand.database_pid is not None:
            processes["database"] = self._stand.database_pid
        before = {user: cpu_seconds(pid) for user, pid in processes.items()}
        load = calling.load(server.address, method, kind, in_flight, self._seconds)
        used = {user: (cpu_seconds(pid) - before[user]) / load.calls * 1e6 for user, pid in processes.items()}
        return Sample(load.calls_per_second, used | {"client": load.client_cpu_us})

    def _fill(self) -> None:
        with grpc.insecure_channel(self._ramet.address) as channel:
            stub = SessionStorageStub(channel)
            for session_id in calling.session_ids():
                session = pb.Session(id=session_id, label="a label", tags=["bench"])
                stub.PutSession(pb.PutSessionRequest(session=session))
                stub.PutMemory(pb.PutMemoryRequest(session_id=session_id, content="m" * 500))
            stub.PutSession(pb.PutSessionRequest(session=pb.Session(id=calling.LONG_SESSION)))
            records = [calling.RECORD] * _HISTORY_RECORDS
            stub.AppendRecords(pb.AppendRecordsRequest(session_id=calling.LONG_SESSION, records=records))
