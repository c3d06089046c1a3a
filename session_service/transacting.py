"""One stream of a transaction: it lives on the event loop, and borrows a thread for each step only."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from ramet.session.v1 import session_pb2 as pb
from ramet_server.domain.call import Call
from ramet_server.domain.errors import DeadlinePassed, InvalidField, RametError, TransactionExpired
from ramet_server.domain.limits import Limits
from ramet_server.serving.endings import Ending
from ramet_server.serving.handlers import Serialized, Unparsed
from ramet_server.serving.workers import Workers
from session_service.convert import transactions as convert
from session_service.rules.transactions import Transaction, TransactionRules

Reply = pb.TransactResponse | Serialized


class TransactStream:
    """The stream of one transaction; with its end the transaction is over, whatever the cause."""

    def __init__(self, rules: TransactionRules, limits: Limits, call: Call, workers: Workers, ending: Ending) -> None:
        self._rules = rules
        self._limits = limits
        self._call = call
        self._workers = workers
        self._ending = ending
        # Only for the steps: a commit that has begun may take its time, since nobody could tell what came of it.
        age_ends = time.monotonic() + limits.max_transaction_seconds
        self._steps_call = replace(call, deadline=min(age_ends, call.deadline or age_ends))
        self._place = 0
        """Of the message on the stream; begin has 0."""

    async def replies(self, requests: AsyncIterator[Unparsed]) -> AsyncGenerator[Reply, None]:
        """Answers each message of the stream; ends with the commit, with the stream, or with an error."""
        transaction = self._rules.open()
        # Wherever the stream is then: it waits for the client to write, or to read.
        timer = asyncio.get_running_loop().call_later(
            self._limits.max_transaction_seconds, lambda: self._ending.cut(self._expired())
        )
        try:
            begin = await anext(requests, None)
            if begin is None:
                return
            yield await self._workers.run(partial(self._begin, transaction, begin))
            async for request in requests:
                self._place += 1
                reply = await self._workers.run(partial(self._step, transaction, request), bounded=False)
                if reply is not None:
                    yield reply
                    continue
                timer.cancel()
                committed = await self._workers.run(partial(transaction.commit, self._call), bounded=False)
                transaction.close()
                yield pb.TransactResponse(committed=pb.TransactCommitted(transaction_id=committed))
                return
        finally:
            timer.cancel()
            transaction.close()

    def _begin(self, transaction: Transaction, request: Unparsed) -> pb.TransactResponse:
        with self._placed():
            message: pb.TransactRequest = request.parse()
            if convert.kind_of(message) != "begin":
                raise InvalidField("begin must come first.", field="step")
        with self._placed("begin"):
            committed = transaction.begin(self._steps_call, message.begin.request_id)
        begun = pb.TransactBegun(transaction_id=transaction.transaction_id, committed_transaction_id=committed)
        return pb.TransactResponse(begun=begun)

    def _step(self, transaction: Transaction, request: Unparsed) -> Serialized | None:
        """Answers a step; None for the commit, which is not done here."""
        with self._placed():
            transaction.check_size(request.size)
            message: pb.TransactRequest = request.parse()
            kind = convert.kind_of(message)
        if kind == "commit":
            return None
        with self._placed(kind):
            step = convert.read_step(message, self._call.space, self._limits)
            body = message.SerializeToString(deterministic=True) if step.writes else b""
            answer = transaction.run(self._steps_call, step, request.size, body)
            # A page is large, so not on the loop.
            return Serialized(convert.answer_message(answer).SerializeToString())

    @contextmanager
    def _placed(self, kind: str = "") -> Iterator[None]:
        """Makes an error tell the step that it ended the transaction at, and the path of its field."""
        try:
            yield
        except DeadlinePassed as late:
            if self._call.deadline is not None and time.monotonic() >= self._call.deadline:
                raise
            raise self._expired() from late
        except RametError as error:
            error.details["step"] = str(self._place)
            if error.field is not None and kind:
                error.field = f"{kind}.{error.field}"
            raise

    def _expired(self) -> TransactionExpired:
        limit = f"{self._limits.max_transaction_seconds:g}"
        return TransactionExpired(
            f"The transaction was open for longer than {limit} seconds.", details={"limit": limit, "unit": "seconds"}
        )
