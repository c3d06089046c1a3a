"""One stream of events: it lives on the event loop, and borrows a thread for each commit only."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from time import monotonic

from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet_server.domain.call import Call
from ramet_server.domain.errors import DeadlinePassed, Overloaded, RametError, WriteConflict
from ramet_server.domain.ids import new_id
from ramet_server.domain.limits import Limits
from ramet_server.serving.handlers import Unparsed
from ramet_server.serving.workers import Workers
from telemetry.convert import streams
from telemetry.inbox import Inbox
from telemetry.rules.event_checks import EventChecks
from telemetry.rules.ingest import Batch, Dropped, IngestRules, Taken

_FIRST_WAIT_S = 0.25
_LONGEST_WAIT_S = 5.0
_COMMIT_S = 30.0
"""A commit that takes longer is given up and tried again, so that a stuck database holds no thread for ever."""

_Outcome = tuple[Taken | None, RametError | None]
"""What came of some messages, and what was wrong with the one after them."""


class EventStream:
    """The newest stream of one producer, or one that was replaced and does not know it yet."""

    __slots__ = ("_call", "_checks", "_commit", "_holder", "_limits", "_producer_id", "_rules", "_workers")

    def __init__(self, rules: IngestRules, checks: EventChecks, limits: Limits, call: Call, workers: Workers) -> None:
        self._rules = rules
        self._checks = checks
        self._limits = limits
        self._call = call
        self._workers = workers
        self._holder = new_id()
        self._producer_id = ""
        self._commit: asyncio.Future[_Outcome] | None = None

    async def replies(self, requests: AsyncIterator[Unparsed]) -> AsyncGenerator[pb.StreamEventsResponse, None]:
        """Answers the messages of the stream; ends with it, or with an error."""
        hello = await anext(requests, None)
        if hello is None:
            return
        committed = await self._workers.run(partial(self._open, hello))
        # It need not be kept for as long as the stream is open.
        del hello
        yield streams.welcome(committed, self._limits)
        inbox = Inbox(requests, self._limits.max_inbox_bytes)
        inbox.open()
        try:
            while messages := await inbox.take():
                async for reply in self._committed(messages):
                    yield reply
        except asyncio.CancelledError:
            # The server drains, or nobody is there any more: what has come is committed all the same.
            async for reply in self._last(inbox):
                yield reply
            raise
        finally:
            inbox.close()

    def _open(self, hello: Unparsed) -> int:
        self._producer_id = streams.producer_id(hello.parse())
        return self._rules.open_stream(self._call, self._producer_id, self._holder)

    async def _committed(self, messages: Sequence[Unparsed]) -> AsyncGenerator[pb.StreamEventsResponse, None]:
        """Commits messages, waiting for as long as the server has too much to do, and tells what came of it."""
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                self._commit = asyncio.wrap_future(self._workers.submit(partial(self._advance, messages)))
                # Cancelling this stream must not lose what is being committed.
                outcome = await asyncio.shield(self._commit)
            except (Overloaded, WriteConflict, DeadlinePassed) as busy:
                self._commit = None
                self._call.check()
                wait_s = max(wait_s, busy.retry_after_s or 0.0)
            else:
                self._commit = None
                break
            yield streams.throttle(wait_s)
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, _LONGEST_WAIT_S)
        for reply in _told(outcome):
            yield reply

    async def _last(self, inbox: Inbox) -> AsyncIterator[pb.StreamEventsResponse]:
        """Commits what has come, as far as that can be done at once; a client sends the rest again elsewhere."""
        with suppress(RametError):
            commit = self._commit
            while True:
                if commit is not None:
                    for reply in _told(await commit):
                        yield reply
                messages = inbox.take_waiting()
                if not messages:
                    return
                commit = asyncio.wrap_future(self._workers.submit(partial(self._advance, messages)))

    def _advance(self, messages: Sequence[Unparsed]) -> _Outcome:
        steps: list[Batch | Dropped] = []
        fault: RametError | None = None
        for message in messages:
            try:
                step = streams.step(message.parse(), self._checks)
                self._rules.check_step(step)
            except RametError as error:
                # What came before it is good, and is committed.
                fault = error
                break
            steps.append(step)
        if not steps:
            return None, fault
        until = monotonic() + _COMMIT_S
        call = replace(self._call, deadline=until if self._call.deadline is None else min(until, self._call.deadline))
        return self._rules.advance(call, self._producer_id, self._holder, steps), fault


def _told(outcome: _Outcome) -> Iterator[pb.StreamEventsResponse]:
    taken, fault = outcome
    if taken is not None:
        yield streams.ack(taken)
        for _ in range(taken.gaps):
            yield streams.gap(taken)
    if fault is not None:
        raise fault
