"""What a stream has received and not yet committed, bounded in bytes."""

import asyncio
from collections.abc import AsyncIterator

from ramet_server.serving.handlers import Unparsed

_TOGETHER_BYTES = 256 * 1024
_TOGETHER_MESSAGES = 64


class Inbox:
    """Reads a stream ahead, so that messages which came during a commit share the next one.

    Thousands may be open and idle, so each holds little: a deque alone has room for 64 items, which are 0.7 KB.
    """

    __slots__ = ("_bytes", "_changed", "_max_bytes", "_reader", "_requests", "_taken", "_waiting")

    def __init__(self, requests: AsyncIterator[Unparsed], max_bytes: int) -> None:
        self._requests = requests
        self._max_bytes = max_bytes
        self._waiting: list[Unparsed] = []
        self._bytes = 0
        self._changed = asyncio.Event()
        self._taken: asyncio.Event | None = None
        """Set when messages were taken; there once the room was full for the first time."""
        self._reader: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Begins to read ahead."""
        self._reader = asyncio.create_task(self._read(), name="telemetry-inbox")

    def close(self) -> None:
        """Reads no more."""
        if self._reader is not None:
            self._reader.cancel()
            # What reading raised after the stream was over is of no use to anyone.
            self._reader.add_done_callback(lambda reader: reader.cancelled() or reader.exception())

    async def take(self) -> list[Unparsed]:
        """Returns the next messages, at least one; none at the end of the stream. Raises what reading raised."""
        while not self._waiting:
            if self._reader is None or self._reader.done():
                if self._reader is not None:
                    self._reader.result()
                return []
            self._changed.clear()
            await self._changed.wait()
        return self.take_waiting()

    def take_waiting(self) -> list[Unparsed]:
        """Returns messages that are there already, as many as belong into one commit."""
        taken: list[Unparsed] = []
        size = 0
        for message in self._waiting[:_TOGETHER_MESSAGES]:
            if taken and size + message.size > _TOGETHER_BYTES:
                break
            taken.append(message)
            size += message.size
        del self._waiting[: len(taken)]
        self._bytes -= size
        if self._taken is not None:
            self._taken.set()
        return taken

    async def _read(self) -> None:
        try:
            async for message in self._requests:
                # A message that is larger than all the room still passes, alone.
                while self._waiting and self._bytes + message.size > self._max_bytes:
                    self._taken = self._taken or asyncio.Event()
                    self._taken.clear()
                    await self._taken.wait()
                self._waiting.append(message)
                self._bytes += message.size
                self._changed.set()
        finally:
            self._changed.set()
