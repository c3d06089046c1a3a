"""A transaction as a test drives it: one message at a time, each answered before the next is sent."""

from __future__ import annotations

import queue
import uuid
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Self

import grpc

from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from tests.conformance.refusing import Refusal, refused


class Transaction:
    """One stream of Transact. Leaving the block cancels a stream that did not end."""

    def __init__(self, storage: SessionStorageStub, request_id: str | None = "") -> None:
        """Begins; without a request_id with one of its own, with None not at all."""
        self._requests: queue.SimpleQueue[pb.TransactRequest | None] = queue.SimpleQueue()
        # It is a grpc.Call as well; the types do not say so.
        self.call: Any = storage.Transact(iter(self._requests.get, None))
        self.begun = pb.TransactBegun()
        if request_id is not None:
            begin = pb.TransactBegin(request_id=request_id or uuid.uuid4().hex)
            self.begun = self.step(begin=begin).begun

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.call.cancel()
        self._requests.put(None)

    def send(self, **step: Any) -> None:
        """Sends a message and does not wait."""
        self._requests.put(pb.TransactRequest(**step))

    def answer(self) -> pb.TransactResponse:
        """Waits for the next answer; raises what ended the stream."""
        response: pb.TransactResponse = next(self.call)
        return response

    def step(self, **step: Any) -> pb.TransactResponse:
        """Sends a message and waits for its answer."""
        self.send(**step)
        return self.answer()

    @property
    def already_committed(self) -> str:
        """The id of the stream that was committed under this request_id before, where one was."""
        return self.begun.committed_transaction_id

    def commit(self) -> str:
        """Commits; the stream is at its end then. Returns the id of the stream whose writes are applied."""
        answer = self.step(commit=pb.TransactCommit())
        assert answer.WhichOneof("result") == "committed"
        assert self.rest() == []
        return answer.committed.transaction_id

    def end(self) -> list[pb.TransactResponse]:
        """Ends the stream without a commit; returns what still came."""
        self._requests.put(None)
        return self.rest()

    def rest(self) -> list[pb.TransactResponse]:
        """Returns what comes until the stream ends; raises where it does not end well."""
        return list(self.call)

    def get_session(self, session_id: str) -> pb.Session:
        """Reads a session."""
        return self.step(get_session=pb.GetSessionRequest(session_id=session_id)).session

    def put_session(self, session_id: str, *, label: str = "", expected_version: int | None = None) -> pb.Session:
        """Creates or updates a session."""
        put = pb.PutSessionRequest(session=pb.Session(id=session_id, label=label), expected_version=expected_version)
        return self.step(put_session=put).session

    def append(self, session_id: str, *records: pb.Record, **more: Any) -> pb.AppendRecordsResponse:
        """Appends records."""
        request = pb.AppendRecordsRequest(session_id=session_id, records=records, **more)
        return self.step(append_records=request).append_records

    def page(self, session_id: str, **more: Any) -> pb.ListRecordsResponse:
        """Reads a page of records."""
        return self.step(list_records=pb.ListRecordsRequest(session_id=session_id, **more)).list_records

    def texts(self, session_id: str, **more: Any) -> list[str]:
        """Reads the content of a page of records."""
        return [record.content for record in self.page(session_id, **more).records]

    def trim(self, session_id: str, keep_last: int) -> pb.TrimRecordsResponse:
        """Drops the oldest records."""
        return self.step(trim_records=pb.TrimRecordsRequest(session_id=session_id, keep_last=keep_last)).trim_records

    def rewind(self, session_id: str, after_seq: int) -> pb.TruncateRecordsResponse:
        """Drops the newest records."""
        request = pb.TruncateRecordsRequest(session_id=session_id, after_seq=after_seq)
        return self.step(truncate_records=request).truncate_records

    def get_memory(self, session_id: str) -> pb.Slot:
        """Reads the memory."""
        return self.step(get_memory=pb.GetMemoryRequest(session_id=session_id)).slot

    def put_memory(self, session_id: str, content: str | None, **more: Any) -> pb.Slot:
        """Writes the memory."""
        return self.step(put_memory=pb.PutMemoryRequest(session_id=session_id, content=content, **more)).slot

    def get_insight(self, session_id: str) -> pb.Slot:
        """Reads the insight."""
        return self.step(get_insight=pb.GetInsightRequest(session_id=session_id)).slot

    def get_system_prompt(self, session_id: str) -> pb.Slot:
        """Reads the system prompt."""
        return self.step(get_system_prompt=pb.GetSystemPromptRequest(session_id=session_id)).slot


def conflicting(
    storage: SessionStorageStub, told: Callable[[Transaction], object], moves: Callable[[], object]
) -> Refusal:
    """Lets something move between what a transaction was told and its commit; returns the refusal that it must meet."""
    with Transaction(storage) as transaction:
        told(transaction)
        moves()
        with refused(grpc.StatusCode.ABORTED, "TRANSACTION_CONFLICT") as refusal:
            transaction.commit()
    return refusal


def requests(*steps: pb.TransactRequest, request_id: str) -> Iterator[pb.TransactRequest]:
    """All messages of a transaction, for a client that does not wait for answers."""
    return _chain([pb.TransactRequest(begin=pb.TransactBegin(request_id=request_id))], steps)


def _chain(*parts: Iterable[pb.TransactRequest]) -> Iterator[pb.TransactRequest]:
    for part in parts:
        yield from part
    yield pb.TransactRequest(commit=pb.TransactCommit())
