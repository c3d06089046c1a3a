"""The threads on which rules and stores run, and the bounded queue before them.

The event loop only routes. As many calls run as there are threads, which is as many as the pool has
connections; some more wait; beyond that a call is refused at once, which costs nobody anything.
"""

import asyncio
import contextlib
import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from ramet_server.domain.errors import Draining, Overloaded

RETRY_AFTER_S = 0.25
"""When a refused caller should try again, in seconds."""

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class _Task:
    future: Future[Any]
    context: contextvars.Context
    fn: Callable[[], Any]

    def run(self) -> Callable[[], None]:
        """Runs the function and returns what hands its outcome to the one who waits."""
        try:
            return partial(self.future.set_result, self.context.run(self.fn))
        except BaseException as error:  # noqa: BLE001 - whatever it is belongs to the one who waits
            return partial(self.future.set_exception, error)


class _Seat:
    """Where a thread without work waits for some."""

    def __init__(self) -> None:
        self.task: _Task | None = None
        """What it is to do next; None once there is no more to come."""
        self._called = threading.Lock()
        self._called.acquire()

    def call(self, task: _Task | None) -> None:
        """Wakes the thread."""
        self.task = task
        self._called.release()

    def wait(self) -> _Task | None:
        """Waits until the thread is called; forgets the task, which must not outlive its work here."""
        self._called.acquire()
        task, self.task = self.task, None
        return task


class Workers:
    """A fixed number of threads and a queue with a limit.

    Of the idle threads the one that worked last works next, so that few of them, and few connections,
    do all the work of a small load and stay warm. Against the longest idle one first, an append alone
    took 0.8 of the time.
    """

    def __init__(self, threads: int, queue_size: int, name: str = "ramet-worker") -> None:
        self.count = threads
        """How many calls run at once."""
        self.queue_size = queue_size
        """How many may wait for a thread."""
        self._queue: deque[_Task] = deque()
        self._guard = threading.Lock()
        self._closed = False
        # Daemons, so that a thread stuck in a dead connection cannot keep the process alive.
        self._idle: list[_Seat] = [_Seat() for _ in range(threads)]
        self._threads = [
            threading.Thread(target=self._work, args=(seat,), name=f"{name}-{n}", daemon=True)
            for n, seat in enumerate(self._idle)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, fn: Callable[[], T], *, bounded: bool = True) -> Future[T]:
        """Queues ``fn``, to run with the caller's context variables.

        Raises Overloaded where the queue is full; with ``bounded`` False it is queued all the same,
        which is for the next step of a call that was admitted before. Raises Draining once closed.
        """
        future: Future[T] = Future()
        task = _Task(future, contextvars.copy_context(), fn)
        with self._guard:
            if self._closed:
                raise Draining("The server is shutting down.")
            if self._idle:
                self._idle.pop().call(task)
                return future
            if bounded and len(self._queue) >= self.queue_size:
                raise overloaded(self.queue_size)
            self._queue.append(task)
        future.add_done_callback(lambda _: self._forget(task))
        return future

    async def run(self, fn: Callable[[], T], *, bounded: bool = True) -> T:
        """Runs ``fn`` on a thread and waits without blocking the loop; see ``submit``.

        Cancelling the wait takes a task that has not started out of the queue.
        """
        return await asyncio.wrap_future(self.submit(fn, bounded=bounded))

    def close(self, timeout_s: float) -> bool:
        """Takes no more tasks, and waits for the rest; False if some still ran after the time."""
        end = time.monotonic() + timeout_s
        with self._guard:
            self._closed = True
            while self._idle:
                self._idle.pop().call(None)
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _forget(self, task: _Task) -> None:
        # A cancelled task must leave the queue now, with the request that it holds in memory.
        if task.future.cancelled():
            with self._guard:
                if task in self._queue:
                    self._queue.remove(task)

    def _work(self, seat: _Seat) -> None:
        task = seat.wait()
        while task is not None:
            hand_over = task.run() if task.future.set_running_or_notify_cancel() else None
            # Before the outcome is handed over, so that whoever is woken by it finds this thread free.
            task, rests = self._next(seat)
            if hand_over is not None:
                hand_over()
                # The frame of an idle thread must not keep the last request in memory.
                hand_over = None
            if rests:
                task = seat.wait()

    def _next(self, seat: _Seat) -> tuple[_Task | None, bool]:
        """Returns the next task, if one is there, and whether the thread must wait to be called."""
        with self._guard:
            if self._queue:
                return self._queue.popleft(), False
            if self._closed:
                return None, False
            self._idle.append(seat)
            return None, True


class Share:
    """The half of the threads that long calls may hold at once, so that short ones always find a free one."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._turns = asyncio.Semaphore(max(1, workers.count // 2))
        self._waiting = 0

    async def run(self, fn: Callable[[], T]) -> T:
        """Runs ``fn`` on a thread once its turn comes. Raises Overloaded where too many wait for theirs."""
        if self._turns.locked() and self._waiting >= self._workers.queue_size:
            raise overloaded(self._workers.queue_size)
        self._waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self._waiting -= 1
        try:
            task = self._workers.submit(fn)
        except BaseException:
            self._turns.release()
            raise
        loop = asyncio.get_running_loop()
        # A caller that leaves does not end what runs already: the turn is over when the thread is free.
        task.add_done_callback(partial(self._free, loop))
        return await asyncio.wrap_future(task)

    def _free(self, loop: asyncio.AbstractEventLoop, _: Future[Any]) -> None:
        # The loop may have ended before a thread that was stuck.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(self._turns.release)


def overloaded(queue_size: int) -> Overloaded:
    """Returns what a call gets that finds the queue full."""
    return Overloaded(
        "The server has as many calls waiting as it takes.",
        details={"queue_size": str(queue_size)},
        retry_after_s=RETRY_AFTER_S,
    )
