"""Open watches, read message by message, as a client reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import grpc
from google.protobuf.message import Message

from tests.conformance.refusing import Refusal, told_by

M = TypeVar("M", bound=Message)


class Watch(Generic[M]):
    """One watch."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def read(self) -> M:
        """The next message; waits for it."""
        message: M = next(self._stream)
        return message

    def read_until(self, true: Callable[[M], bool]) -> list[M]:
        """Messages up to the first of which this holds."""
        messages = [self.read()]
        while not true(messages[-1]):
            messages.append(self.read())
        return messages

    def end(self) -> Refusal:
        """How the server ends the watch, whatever it tells before."""
        try:
            while True:
                self.read()
        except grpc.RpcError as error:
            return told_by(error)

    def cancel(self) -> None:
        """Leave the watch."""
        self._stream.cancel()


@contextmanager
def watching(stream: Any) -> Iterator[Watch[Any]]:
    """A watch that is left with the block."""
    watch: Watch[Any] = Watch(stream)
    try:
        yield watch
    finally:
        watch.cancel()
