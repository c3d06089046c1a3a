"""The event loop in the background that every blocking client shares, and the bridge to it."""

import asyncio
import functools
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

__all__ = ["LoopThread", "Portal", "blocking", "iterating"]

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Core = TypeVar("_Core")

_CHUNK = 256
_END = object()


class LoopThread:
    """An event loop on a thread of its own: started for the first user, ended after the last one."""

    _lock = threading.Lock()
    _current: "LoopThread | None" = None

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ramet-blocking", daemon=True)
        self.users = 0
        self.pid = os.getpid()
        self._thread.start()

    @classmethod
    def acquire(cls) -> "LoopThread":
        """Returns the loop of this process for one more user."""
        with cls._lock:
            if cls._current is None or cls._current.pid != os.getpid():
                # The thread of a parent process does not live on in a forked child.
                cls._current = cls()
            cls._current.users += 1
            return cls._current

    def release(self) -> None:
        """Takes one user away; without users the loop ends."""
        with self._lock:
            self.users -= 1
            if self.users > 0:
                return
            if LoopThread._current is self:
                LoopThread._current = None
        self.run(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Runs a coroutine on the loop and waits for it; an interrupt of the wait cancels it."""
        if self._loop.is_closed() or threading.current_thread() is self._thread:
            work.close()
            closed = self._loop.is_closed()
            raise RuntimeError("this client is closed" if closed else "a blocking client cannot wait on its own loop")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def iterate(self, items: AsyncGenerator[_T, None], chunk_size: int = _CHUNK) -> Generator[_T, None, None]:
        """Yields from an asynchronous iterator, a chunk per trip to the loop; leaving early closes it."""
        try:
            while True:
                chunk, end = self.run(_take(items, chunk_size))
                yield from chunk
                if isinstance(end, BaseException):
                    raise end
                if end is _END:
                    return
        finally:
            self.run(_close(items))


class Portal(Protocol):
    """Whatever stands before an asyncio object and runs its methods on the loop."""

    @property
    def _loop_thread(self) -> LoopThread: ...

    @property
    def _core(self) -> Any:
        """The asyncio object; asked for on the loop only, since it may open a channel there."""


def blocking(
    method: Callable[Concatenate[_Core, _P], Coroutine[Any, Any, _T]],
) -> Callable[Concatenate[Portal, _P], _T]:
    """Makes the blocking twin of a coroutine method, with its signature and docstring."""

    @functools.wraps(method)
    def twin(self: Portal, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        async def work() -> _T:
            return await method(self._core, *args, **kwargs)

        return self._loop_thread.run(work())

    return twin


def iterating(
    method: Callable[Concatenate[_Core, _P], AsyncGenerator[_T, None]], *, live: bool = False
) -> Callable[Concatenate[Portal, _P], Generator[_T, None, None]]:
    """Makes the blocking twin of a method that yields asynchronously.

    What is ``live`` comes when it happens, so each item is handed over at once; else a trip to the loop takes many.
    """
    chunk_size = 1 if live else _CHUNK

    @functools.wraps(method)
    def twin(self: Portal, /, *args: _P.args, **kwargs: _P.kwargs) -> Generator[_T, None, None]:
        async def start() -> AsyncGenerator[_T, None]:
            return method(self._core, *args, **kwargs)

        return self._loop_thread.iterate(self._loop_thread.run(start()), chunk_size)

    return twin


async def _take(items: AsyncGenerator[_T, None], chunk_size: int) -> tuple[list[_T], object]:
    """Takes up to a chunk of items, and what ended them: nothing yet, the end, or an error to raise after them."""
    taken: list[_T] = []
    try:
        while len(taken) < chunk_size:
            taken.append(await anext(items))
    except StopAsyncIteration:
        return taken, _END
    except Exception as error:  # noqa: BLE001 - handed over to the caller, who raises it after the items before it
        return taken, error
    return taken, None


async def _close(items: AsyncGenerator[Any, None]) -> None:
    await items.aclose()
