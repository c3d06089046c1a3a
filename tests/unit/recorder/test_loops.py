"""The sender's loop and thread leave the rest of the process alone."""

from __future__ import annotations

import asyncio
import logging
import random

import pytest

from ramet.recorder import Limits
from ramet.recorder.loops import new_loop
from ramet.recorder.sender import backoff_s


def test_a_loop_may_be_told_of_something_after_it_was_closed() -> None:
    loop = new_loop()
    heard: list[int] = []
    loop.call_soon_threadsafe(heard.append, 1)
    loop.call_soon_threadsafe(loop.stop)
    loop.run_forever()
    loop.close()
    assert loop.call_soon_threadsafe(heard.append, 2).cancelled()
    assert heard == [1]


class PollerCompletionQueue:
    """As gRPC's own is called, whose callback is what fails."""

    def __init__(self, other: asyncio.AbstractEventLoop) -> None:
        self._other = other

    def handle_events(self) -> None:
        """Passes an event on to another loop."""
        self._other.call_soon_threadsafe(print)


def test_a_loop_tells_its_own_faults_and_not_that_others_are_closed(caplog: pytest.LogCaptureFixture) -> None:
    closed = asyncio.new_event_loop()
    closed.close()
    loop = new_loop()
    loop.call_soon(PollerCompletionQueue(closed).handle_events)
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert [record for record in caplog.records if record.levelno > logging.DEBUG] == []
    loop.call_soon(int, "x")
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
    assert "ValueError" in caplog.text


def test_pauses_grow_to_their_limit_and_differ_by_chance() -> None:
    limits = Limits(first_backoff_s=0.1, longest_backoff_s=2.0)
    for failures, longest in enumerate([0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]):
        pauses = [backoff_s(limits, failures, random.Random(seed)) for seed in range(50)]
        assert longest / 2 <= min(pauses) < max(pauses) <= longest
    assert backoff_s(limits, 10_000, random.Random(1)) <= 2.0
