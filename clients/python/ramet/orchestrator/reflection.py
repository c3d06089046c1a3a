"""Reflection: digests of all sessions in, insights out, each to its target."""

import asyncio
import inspect
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, TypeAlias

from ramet.client import Client, RametError, Slot
from ramet.client.arguments import of_kind, refused
from ramet.orchestrator.calling import call
from ramet.orchestrator.digests import Digest

__all__ = ["Insights", "Reflect", "Reflection", "reflect"]

Insights: TypeAlias = Mapping[str, str] | Iterable[tuple[str, str]] | AsyncIterable[tuple[str, str]]
"""Insights by the session that each is for."""

Reflect: TypeAlias = Callable[[Sequence[Digest]], Insights | Awaitable[Insights]]
"""Derives insights from digests; plain (run on a thread), asynchronous, or an asynchronous generator of pairs."""

_PARALLEL = 16


@dataclass(frozen=True)
class Reflection:
    """What became of the insights of one reflection."""

    digests: tuple[Digest, ...]
    """What the function was given."""
    delivered: Mapping[str, Slot]
    """The insight of each target that has it now."""
    failed: Mapping[str, RametError]
    """Why each of the other targets has it not."""


async def reflect(client: Client, digests: Sequence[Digest], function: Reflect) -> Reflection:
    """Calls the function and delivers what it derives, as it comes."""
    delivery = _Delivery(client)
    try:
        made = await call(function, digests)
        async with AsyncExitStack() as stack:
            if inspect.isasyncgen(made):
                stack.push_async_callback(made.aclose)
            async for target, content in _pairs(made):
                await delivery.begin(target, content)
        await delivery.end()
    except Exception as error:
        await delivery.end()
        error.add_note(f"Before that, {len(delivery.delivered)} insights were delivered.")
        raise
    finally:
        delivery.cancel()
    return Reflection(tuple(digests), delivery.delivered, delivery.failed)


class _Delivery:
    """Delivers insights, several targets at a time, those of one target in their order."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._places = asyncio.Semaphore(_PARALLEL)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.delivered: dict[str, Slot] = {}
        self.failed: dict[str, RametError] = {}

    async def begin(self, target: str, content: str) -> None:
        """Waits for a place, and delivers on its own from there."""
        if target in self._tasks:
            await self._tasks[target]
        await self._places.acquire()
        self._tasks[target] = asyncio.create_task(self._deliver(target, content))

    async def end(self) -> None:
        """Waits for what is under way."""
        if self._tasks:
            await asyncio.wait(self._tasks.values())

    def cancel(self) -> None:
        """Gives up what is under way."""
        for task in self._tasks.values():
            task.cancel()

    async def _deliver(self, target: str, content: str) -> None:
        try:
            of_kind(str, content, "content")
            slot = await self._client.sessions.put_insight(target, content)
        except RametError as error:
            self.failed[target] = error
            self.delivered.pop(target, None)
        else:
            self.delivered[target] = slot
            self.failed.pop(target, None)
        finally:
            self._places.release()


async def _pairs(made: Any) -> AsyncIterator[tuple[str, str]]:
    if isinstance(made, AsyncIterable):
        async for pair in made:
            yield _pair(pair)
        return
    items = made.items() if isinstance(made, Mapping) else made
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        raise refused("function", f"must make insights by target, not {type(made).__name__}")
    for pair in items:
        yield _pair(pair)


def _pair(pair: Any) -> tuple[str, str]:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise refused("function", f"must make pairs of a target and an insight, not {type(pair).__name__}")
    return of_kind(str, pair[0], "target"), pair[1]
