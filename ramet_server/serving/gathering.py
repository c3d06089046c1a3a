"""Calls that come while others like them are at work, and then go to work together.

The first call goes at once. Those that come meanwhile wait for it and then go as one group, on one
thread, without ever waiting on purpose: the more calls come, the larger the groups. A group of 64
appends costs one change of threads and one commit where there were 64 of each.

A call that cannot be done in a group, or is too large for one, runs alone and beside the others, on
another thread. Each call has a lane, such as its session: while one of a lane runs alone the others of
that lane wait for it, so that their order is kept; all other lanes go on.

Reads have no order to keep. So they have no lanes, and a group of theirs that takes long is overtaken by
the next.
"""

import asyncio
import contextlib
import contextvars
import time
from collections import deque
from collections.abc import Callable, Collection, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from ramet_server.domain.call import Call
from ramet_server.domain.errors import Draining
from ramet_server.domain.sharing import Alone
from ramet_server.serving.workers import Workers, overloaded

_GROUP_CALLS = 128
"""Members of a group: beyond some dozens a larger group makes nothing cheaper, and everybody in it later."""

_GROUP_BYTES = 1024 * 1024
_LARGE_BYTES = 256 * 1024
"""A larger call runs alone, so that the small ones need not wait until it is checked and stored."""

_LONG_S = 0.05
"""A group of reads that takes longer is overtaken by those who came after it."""


@dataclass(frozen=True)
class Gathered:
    """How the calls of a method are done in groups."""

    lane: Callable[[Any], Hashable] | None
    """Of a request: what its order is kept by, within the space of the call; None where order means nothing."""
    read: Callable[[Any], Any]
    """Makes of a request what ``run`` takes; may raise, and may change the request."""
    run: Callable[[Sequence[Call], Sequence[Any]], Sequence[Any]]
    """Does many at once; returns a result for each, or its error, or ALONE."""
    write: Callable[[Any], Any]
    """Makes the reply of a result."""


class Codec(Protocol):
    """Bytes to requests and replies to bytes."""

    def parse(self, raw: bytes) -> Any:
        """Returns the request."""

    def serialize(self, reply: Any) -> bytes:
        """Returns the bytes of the reply."""


@dataclass(eq=False, slots=True)
class _Waiting:
    raw: bytes
    call: Call
    reply: "asyncio.Future[bytes]"
    context: contextvars.Context = field(default_factory=contextvars.copy_context)


@dataclass(frozen=True, slots=True)
class _RunAlone:
    lane: Hashable


_Answer = bytes | BaseException | _RunAlone


class Gatherer:
    """Gathers the calls of one method; used from the loop's thread only."""

    def __init__(self, codec: Codec, gathered: Gathered, alone: Callable[[Any, Call], Any], workers: Workers) -> None:
        """Takes the method's two ways: many calls at once, and one alone."""
        self._codec = codec
        self._gathered = gathered
        self._alone = alone
        self._workers = workers
        self._queue_size = workers.queue_size
        # So many threads at most wait for rows that others hold. Half of all may do long calls; the rest goes on.
        self._free_threads = max(1, workers.count // 4)
        self._waiting: deque[_Waiting] = deque()
        self._most_groups = 1 if gathered.lane is not None else max(1, workers.count // 2)
        self._groups = 0
        self._began_at = 0.0
        """When the latest group went to work."""
        self._looks_again = False
        self._lanes: dict[Hashable, deque[_Waiting]] = {}
        """The calls that wait for one of their lane to run alone; the first is the one that runs, or will next."""
        self._unstarted: deque[Hashable] = deque()

    async def run(self, raw: bytes, call: Call) -> bytes:
        """Returns the reply to one call; raises Overloaded where too many wait, and what its method raises."""
        if len(self._waiting) >= self._queue_size:
            raise overloaded(self._queue_size)
        waiting = _Waiting(raw, call, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._go()
        return await waiting.reply

    def _go(self) -> None:
        """Sends the next group to work, unless one is at work that is not to be overtaken."""
        if self._groups and not self._may_overtake():
            return
        group = self._next_group()
        if not group:
            return
        self._groups += 1
        self._began_at = time.monotonic()
        work = partial(self._work, group, frozenset(self._lanes))
        self._submit(work, partial(self._group_done, group), group)

    def _may_overtake(self) -> bool:
        if self._groups >= self._most_groups:
            return False
        left_s = self._began_at + _LONG_S - time.monotonic()
        if left_s <= 0:
            return True
        if not self._looks_again:
            self._looks_again = True
            asyncio.get_running_loop().call_later(left_s, self._look_again)
        return False

    def _look_again(self) -> None:
        self._looks_again = False
        if self._waiting:
            self._go()

    def _next_group(self) -> list[_Waiting]:
        group: list[_Waiting] = []
        room = _GROUP_BYTES
        while self._waiting and len(group) < _GROUP_CALLS:
            first = self._waiting[0]
            if first.reply.done():
                # Its client left before it began.
                self._waiting.popleft()
                continue
            room -= len(first.raw)
            if group and room < 0:
                break
            group.append(self._waiting.popleft())
        return group

    def _submit(
        self, work: Callable[[], Any], done: "Callable[[Future[Any]], None]", members: Sequence[_Waiting]
    ) -> None:
        loop = asyncio.get_running_loop()
        try:
            # Nobody's context: what a group does is not one call's work. Each call was admitted before.
            future = contextvars.Context().run(partial(self._workers.submit, work, bounded=False))
        except Draining as error:
            for member in members:
                _settle(member, error)
            return
        future.add_done_callback(partial(_on_loop, loop, done))

    def _work(self, group: Sequence[_Waiting], held: Collection[Hashable]) -> list[_Answer]:
        """Does a group, on a worker thread."""
        answers: list[_Answer] = []
        part: list[tuple[int, Call, Any]] = []
        aside = set(held)
        for place, member in enumerate(group):
            try:
                request = self._codec.parse(member.raw)
                lane = self._lane(member, request)
                answers.append(_RunAlone(lane))
                if lane in aside:
                    continue
                if len(member.raw) > _LARGE_BYTES:
                    aside.add(lane)
                    continue
                part.append((place, member.call, self._gathered.read(request)))
            except Exception as error:  # noqa: BLE001 - raised again where the call is conducted
                answers[place:] = [error]
        if part:
            results = self._gathered.run([call for _, call, _ in part], [value for _, _, value in part])
            for (place, _, _), result in zip(part, results, strict=True):
                answers[place] = self._answer(result, answers[place])
        return answers

    def _lane(self, member: _Waiting, request: Any) -> Hashable:
        # A lane of its own waits for nobody.
        return member if self._gathered.lane is None else (member.call.space, self._gathered.lane(request))

    def _answer(self, result: Any, alone: _Answer) -> _Answer:
        if isinstance(result, Alone):
            return alone
        if isinstance(result, Exception):
            return result
        try:
            return self._codec.serialize(self._gathered.write(result))
        except Exception as error:  # noqa: BLE001 - raised again where the call is conducted
            return error

    def _group_done(self, group: Sequence[_Waiting], ended: "Future[list[_Answer]]") -> None:
        self._groups -= 1
        failure = ended.exception()
        answers: Sequence[_Answer] = [failure for _ in group] if failure is not None else ended.result()
        for member, answer in zip(group, answers, strict=True):
            if isinstance(answer, _RunAlone):
                self._set_aside(answer.lane, member)
            else:
                _settle(member, answer)
        self._go()

    def _set_aside(self, lane: Hashable, member: _Waiting) -> None:
        queue = self._lanes.get(lane)
        if queue is not None:
            queue.append(member)
            return
        self._lanes[lane] = deque([member])
        self._unstarted.append(lane)
        self._start_lanes()

    def _start_lanes(self) -> None:
        while self._free_threads and self._unstarted:
            lane = self._unstarted.popleft()
            member = self._lanes[lane][0]
            self._free_threads -= 1
            self._submit(partial(self._work_alone, member), partial(self._alone_done, lane), self._lanes[lane])

    def _work_alone(self, member: _Waiting) -> bytes:
        # Parsed again, because the group's reading may have changed the request.
        def work() -> bytes:
            member.call.check()
            return self._codec.serialize(self._alone(self._codec.parse(member.raw), member.call))

        return member.context.run(work)

    def _alone_done(self, lane: Hashable, ended: "Future[bytes]") -> None:
        self._free_threads += 1
        first, *others = self._lanes.pop(lane)
        failure = ended.exception()
        _settle(first, failure if failure is not None else ended.result())
        # The others take their places at the head of the queue again: they may go as a group now.
        self._waiting.extendleft(reversed(others))
        self._start_lanes()
        self._go()


def _on_loop(loop: asyncio.AbstractEventLoop, done: "Callable[[Future[Any]], None]", ended: "Future[Any]") -> None:
    # The loop may have ended before a thread that was stuck.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(done, ended)


def _settle(member: _Waiting, answer: bytes | BaseException) -> None:
    if member.reply.done():
        return
    if isinstance(answer, BaseException):
        member.reply.set_exception(answer)
    else:
        member.reply.set_result(answer)
