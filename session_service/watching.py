"""WatchRecords: how a stream reads on, from the hub that wakes it to the message it sends."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from ramet.session.v1 import session_pb2 as pb
from ramet_server.domain.call import Call
from ramet_server.serving.watch_hub import Step, WatchHub
from ramet_server.serving.workers import Workers
from session_service.convert.records import news_message
from session_service.rules.watching import Position, WatchRules


class RecordWatches:
    """The watches of sessions, of all spaces; the key of one is the origin of its session."""

    def __init__(self, rules: WatchRules, hub: WatchHub) -> None:
        self._rules = rules
        self._hub = hub

    async def follow(
        self, session_id: str, after_seq: int | None, call: Call, workers: Workers
    ) -> AsyncGenerator[pb.WatchRecordsResponse, None]:
        """Yields where the watch begins with what is there, and then whatever comes."""
        position = await self._hub.read(workers, lambda: self._rules.begin(call, session_id, after_seq))
        reader = _Reader(self._rules, call, position)
        async with aclosing(self._hub.follow(position.origin, workers, reader.step)) as messages:
            async for message in messages:
                yield message


class _Reader:
    """One watch's position, and its steps, of which one runs at once."""

    __slots__ = ("_begun", "_call", "_position", "_rules")

    def __init__(self, rules: WatchRules, call: Call, position: Position) -> None:
        self._rules = rules
        self._call = call
        self._position = position
        self._begun = False

    def step(self) -> Step[pb.WatchRecordsResponse]:
        """Reads on; runs on a worker thread."""
        news = self._rules.news(self._call, self._position)
        moved = news.position != self._position
        self._position = news.position
        tells, self._begun = moved or not self._begun, True
        return Step(news_message(news) if tells else None, news.stand, news.more)
