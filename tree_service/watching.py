"""WatchTree: how a stream reads on, from the hub that wakes it to the message it sends."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from ramet.tree.v1 import tree_pb2 as pb
from ramet_server.domain.call import Call
from ramet_server.serving.watch_hub import Step, WatchHub
from ramet_server.serving.workers import Workers
from tree_service.convert import news_message
from tree_service.rules.watching import WatchRules


class TreeWatches:
    """The watches of forests; the key of one is its space."""

    def __init__(self, rules: WatchRules, hub: WatchHub) -> None:
        self._rules = rules
        self._hub = hub

    async def follow(
        self, after_position: int | None, call: Call, workers: Workers
    ) -> AsyncGenerator[pb.WatchTreeResponse, None]:
        """Yields where the watch begins with what is there, and then whatever comes."""
        position = await self._hub.read(workers, lambda: self._rules.begin(call, after_position))
        reader = _Reader(self._rules, call, position)
        async with aclosing(self._hub.follow(call.space, workers, reader.step)) as messages:
            async for message in messages:
                yield message


class _Reader:
    """One watch's position, and its steps, of which one runs at once."""

    def __init__(self, rules: WatchRules, call: Call, position: int) -> None:
        self._rules = rules
        self._call = call
        self._position = position
        self._begun = False

    def step(self) -> Step[pb.WatchTreeResponse]:
        """Reads on; runs on a worker thread."""
        news = self._rules.news(self._call, self._position)
        tells = news.position != self._position or not self._begun
        self._position, self._begun = news.position, True
        return Step(news_message(news) if tells else None, news.extent, news.more)
