"""Whether appends, forks and reads stay as quick as sessions grow."""

from collections.abc import Sequence
from functools import cache

import grpc

from benchmarks import messages
from benchmarks.comparing import Side
from benchmarks.messages import Messages
from benchmarks.parts.wire import put_history
from benchmarks.sides import SESSIONS, Works, timed
from benchmarks.stand import Server, Stand
from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub

_SHORT, _LONG = 10, 100_000
_FORKS = 1000


def works(stand: Stand) -> Works:
    """Returns what is compared between short and long sessions of one server."""

    @cache
    def server() -> Server:
        return stand.ramet(stand.new_database())

    def by_length(method: str, work: str) -> Sequence[Side]:
        sides = []
        for name, records in ((f"{_LONG:,} records", _LONG), (f"{_SHORT:,} records", _SHORT)):
            session_id = f"{work}-{records}"
            with grpc.insecure_channel(server().address) as channel:
                put_history(SessionStorageStub(channel), session_id, records)
            sent = messages.appends([session_id]) if work == "append" else messages.forks(session_id)
            sides.append(timed(stand, name, server(), f"{SESSIONS}/{method}", sent))
        return sides

    def chain(_: int) -> Sequence[Side]:
        with grpc.insecure_channel(server().address) as channel:
            stub = SessionStorageStub(channel)
            put_history(stub, "plain", _FORKS)
            end = _put_chain(stub)

        def reading(name: str, sent: Messages) -> Side:
            return timed(stand, name, server(), f"{SESSIONS}/ListRecords", sent)

        return [
            reading(f"end of {_FORKS:,} forks", messages.history(end)),
            reading("one session", messages.history("plain")),
        ]

    return {
        "append": lambda _: by_length("AppendRecords", "append"),
        "fork": lambda _: by_length("ForkSession", "fork"),
        "chain": chain,
    }


def _put_chain(stub: SessionStorageStub) -> str:
    """Makes sessions of one record each, every one a fork of the one before; returns the last one's id."""
    put_history(stub, "link-1", 1)
    for number in range(2, _FORKS + 1):
        fork = pb.ForkSessionRequest(source_session_id=f"link-{number - 1}", session_id=f"link-{number}")
        fork.all.SetInParent()
        stub.ForkSession(fork)
        stub.AppendRecords(pb.AppendRecordsRequest(session_id=fork.session_id, records=[messages.RECORD]))
    return f"link-{_FORKS}"
