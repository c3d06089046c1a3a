"""The stream of one transaction: requests go in one by one, and each is answered before the next."""

import asyncio
from contextlib import suppress
from typing import Any

import grpc
from google.protobuf.message import Message

from ramet.client.calls import Caller
from ramet.client.errors import Cancelled, NotFound, RametError, Unavailable
from ramet.session.v1 import session_pb2 as pb

__all__ = ["StepCaller", "StepStub", "Steps"]

_BEGIN_S = 5.0
"""How long a server is looked for before the first step; one that restarts is back by then."""

_FIELDS = {
    field.message_type.full_name: field.name
    for field in pb.TransactRequest.DESCRIPTOR.fields
    if field.message_type is not None
}
"""The step that takes a message."""


class Steps:
    """One stream of Transact, with its last error if it has ended."""

    def __init__(self, stub: Any, caller: Caller, request_id: str) -> None:
        self._stub = stub
        self._caller = caller
        self._request_id = request_id
        # Steps that are made at once go one after another.
        self._turn = asyncio.Lock()
        self._call: grpc.aio.StreamStreamCall[pb.TransactRequest, pb.TransactResponse] | None = None
        self._error: RametError | None = None
        self.commit_sent = False
        """Whether the server may have heard of a commit."""

    async def begin(self) -> pb.TransactBegun:
        """Opens the stream.

        Nothing depends on it yet, so a server that is away, or busy, is tried again.
        """
        request = pb.TransactRequest(begin=pb.TransactBegin(request_id=self._request_id))
        patience_s = min(_BEGIN_S, self._caller.timeout_s)
        attempts = self._caller.attempts(request, patience_s, request_id=self._request_id)
        while True:
            self._call = self._stub.Transact(metadata=self._caller.metadata())
            try:
                return (await self._exchange(self._call, request, attempts.remaining_s())).begun
            except grpc.aio.AioRpcError as failure:
                await attempts.pause_or_raise(failure, _told(attempts.typed(failure)), lasting=True)
            except TimeoutError:
                raise attempts.late() from None

    async def step(self, request: pb.TransactRequest) -> pb.TransactResponse:
        """Makes one step; raises a RametError, after which every other step raises it too."""
        async with self._turn:
            if self._error is not None:
                raise self._error
            if self._call is None:
                raise RuntimeError("the stream was not opened")
            attempts = self._caller.attempts(request, request_id=self._request_id)
            try:
                return await self._exchange(self._call, request, attempts.remaining_s())
            except grpc.aio.AioRpcError as failure:
                self._error = _told(attempts.typed(failure))
                raise self._error from failure
            except TimeoutError:
                self._error = attempts.late()
                self._call.cancel()
                raise self._error from None
            except RametError as error:
                self._error = error
                raise

    async def commit(self) -> str:
        """Commits; returns the id of the stream whose writes are applied."""
        if self._error is None:
            self.commit_sent = True
        return (await self.step(pb.TransactRequest(commit=pb.TransactCommit()))).committed.transaction_id

    def cancel(self) -> None:
        """Ends the stream; without a commit nothing is applied."""
        if self._call is not None:
            self._call.cancel()

    def not_found(self) -> NotFound:
        """Says that a read found no session."""
        return NotFound(
            "No session has this id.",
            code=grpc.StatusCode.NOT_FOUND,
            reason="SESSION_NOT_FOUND",
            method="Transact",
            request_id=self._request_id,
        )

    async def _exchange(
        self,
        call: "grpc.aio.StreamStreamCall[pb.TransactRequest, pb.TransactResponse]",
        request: pb.TransactRequest,
        timeout_s: float,
    ) -> pb.TransactResponse:
        try:
            async with asyncio.timeout(timeout_s):
                # Where the stream has ended already, reading tells why.
                with suppress(asyncio.InvalidStateError):
                    await call.write(request)
                response = await call.read()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                call.cancel()
                raise
            raise self._ended("The client was closed, or the transaction ended, during a step.") from None
        if not isinstance(response, pb.TransactResponse):
            raise self._ended("The transaction has ended.")
        return response

    def _ended(self, message: str) -> Cancelled:
        return Cancelled(message, code=grpc.StatusCode.CANCELLED, method="Transact", request_id=self._request_id)


def _told(error: RametError) -> RametError:
    """Returns the error that a stream ended with; one that was made on this side means that the connection is lost."""
    if error.code is not grpc.StatusCode.INTERNAL or error.reason:
        return error
    return Unavailable(
        "The connection was lost during the transaction.",
        code=grpc.StatusCode.UNAVAILABLE,
        method=error.method,
        request_id=error.request_id,
    )


class StepStub:
    """Stands where methods look for the RPC that they call: a step knows by its request what it is."""

    def __getattr__(self, name: str) -> str:
        """Returns the RPC's name."""
        return name


class StepCaller:
    """Makes the steps of a transaction where a Caller would make calls."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    async def unary(self, _: str, request: Message) -> Any:
        """Makes one step and returns its answer; raises a RametError."""
        if "request_id" in request.DESCRIPTOR.fields_by_name:
            request.ClearField("request_id")
        step: dict[str, Any] = {_FIELDS[request.DESCRIPTOR.full_name]: request}
        response = await self._steps.step(pb.TransactRequest(**step))
        result = response.WhichOneof("result")
        if result is None or result == "not_found":
            raise self._steps.not_found()
        return getattr(response, result)
