"""Calls over the wire against servers that do one thing only."""

from collections.abc import Sequence
from functools import cached_property

import grpc

from benchmarks import messages
from benchmarks.comparing import Side
from benchmarks.messages import Messages
from benchmarks.sides import BARE, SESSIONS, Works, called
from benchmarks.stand import Server, Stand
from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub

_HISTORY_RECORDS = 1000


def works(stand: Stand) -> Works:
    """Returns what can be compared over the wire."""
    wire = _Wire(stand)
    return {
        "append": lambda in_flight: [
            wire.ramet("AppendRecords", messages.appends(), in_flight),
            wire.bare_append(messages.appends(), in_flight),
            wire.bare_echo(in_flight),
        ],
        "append16": lambda in_flight: [
            wire.ramet("AppendRecords", messages.appends(records=16), in_flight),
            wire.bare_append(messages.appends(records=16), in_flight),
        ],
        "slot": lambda in_flight: [wire.ramet("GetMemory", messages.SLOTS, in_flight), wire.bare_echo(in_flight)],
        "session": lambda in_flight: [
            wire.ramet("GetSession", messages.READ_SESSIONS, in_flight),
            wire.bare_echo(in_flight),
        ],
        "history": lambda in_flight: wire.beside_bare_history("ListRecords", messages.history(), in_flight),
        "context": lambda in_flight: wire.beside_bare_history("GetContext", messages.CONTEXT, in_flight),
    }


class _Wire:
    """Ramet and the bare servers over one database server; each starts when it is first called."""

    def __init__(self, stand: Stand) -> None:
        self._stand = stand

    def ramet(self, method: str, sent: Messages, in_flight: int) -> Side:
        return called(self._stand, "Ramet", self._ramet, f"{SESSIONS}/{method}", sent, in_flight)

    def bare_append(self, sent: Messages, in_flight: int) -> Side:
        return called(self._stand, "bare append", self._appends, BARE, sent, in_flight)

    def bare_echo(self, in_flight: int) -> Side:
        return called(self._stand, "bare echo", self._echo, BARE, messages.ECHOED, in_flight)

    def beside_bare_history(self, method: str, sent: Messages, in_flight: int) -> Sequence[Side]:
        ours = self.ramet(method, sent, in_flight)
        return [ours, called(self._stand, "bare history", self._history, BARE, messages.history(), in_flight)]

    @cached_property
    def _url(self) -> str:
        return self._stand.new_database()

    @cached_property
    def _ramet(self) -> Server:
        server = self._stand.ramet(self._url)
        fill(server.address)
        return server

    @cached_property
    def _appends(self) -> Server:
        return self._stand.bare("appends", "--database", self._stand.new_database())

    @cached_property
    def _echo(self) -> Server:
        return self._stand.bare("echo")

    @cached_property
    def _history(self) -> Server:
        return self._stand.bare("history", "--database", self._url)


def fill(address: str) -> None:
    """Makes the sessions that calls go round, and the long one."""
    with grpc.insecure_channel(address) as channel:
        stub = SessionStorageStub(channel)
        for session_id in messages.SESSIONS:
            session = pb.Session(id=session_id, label="a label", tags=["bench"])
            stub.PutSession(pb.PutSessionRequest(session=session))
            stub.PutMemory(pb.PutMemoryRequest(session_id=session_id, content="m" * 500))
        put_history(stub, messages.LONG_SESSION, _HISTORY_RECORDS)


def put_history(stub: SessionStorageStub, session_id: str, records: int) -> None:
    """Makes a session with a history; it is appended 1,000 records at a time."""
    stub.PutSession(pb.PutSessionRequest(session=pb.Session(id=session_id)))
    while records > 0:
        several = [messages.RECORD] * min(records, 1000)
        stub.AppendRecords(pb.AppendRecordsRequest(session_id=session_id, records=several))
        records -= len(several)
