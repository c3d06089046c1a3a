"""Calls that are done in groups: who goes with whom, who goes alone, and who is refused."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from ramet_server.domain.call import Call
from ramet_server.domain.errors import Draining, InvalidField, Overloaded
from ramet_server.domain.sharing import ALONE
from ramet_server.serving import gathering
from ramet_server.serving.gathering import Gathered, Gatherer
from ramet_server.serving.workers import Workers
from tests.serving.echo_service import Gate

_LARGE = 300 * 1024


class _Words:
    """Requests and replies are text."""

    def parse(self, raw: bytes) -> str:
        return raw.decode()

    def serialize(self, reply: str) -> bytes:
        return reply.encode()


@dataclass
class _Desk:
    """Does words in groups: ``lane what``, where what may be wait, alone, alone-wait, bad or broken."""

    workers: Workers
    ordered: bool = True
    gate: Gate = field(default_factory=Gate)
    alone_gate: Gate = field(default_factory=Gate)
    groups: list[list[str]] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        gathered = Gathered(
            lane=(lambda word: word.split()[0]) if self.ordered else None,
            read=self._read,
            run=self._run,
            write=lambda word: f"{word} together",
        )
        self.gatherer = Gatherer(_Words(), gathered, self._alone, self.workers)

    def call(self, word: str) -> "asyncio.Task[bytes]":
        """Sends a call."""
        return asyncio.ensure_future(self.gatherer.run(word.encode(), Call("space")))

    def _read(self, word: str) -> str:
        if "bad" in word:
            raise InvalidField("bad", field="word")
        return word

    def _run(self, calls: Sequence[Call], words: Sequence[str]) -> list[Any]:
        assert len(calls) == len(words)
        self.groups.append(list(words))
        if any("broken" in word for word in words):
            raise RuntimeError("broken")
        if any(word.endswith(" wait") for word in words):
            self.gate.wait()
        self.done += [word for word in words if "alone" not in word]
        return [ALONE if "alone" in word else word for word in words]

    def _alone(self, word: str, _: Call) -> str:
        if "alone-wait" in word:
            self.alone_gate.wait()
        self.done.append(word[:20])
        return f"{word[:20]} alone"


@pytest.fixture
def desk() -> Iterator[_Desk]:
    """A desk with two threads and room for four who wait."""
    workers = Workers(2, 4)
    desk = _Desk(workers)
    yield desk
    desk.gate.go.set()
    desk.alone_gate.go.set()
    assert workers.close(10)


async def _at_work(gate: Gate) -> None:
    assert await asyncio.to_thread(gate.entered.acquire, timeout=10)


async def test_calls_that_come_while_a_group_is_at_work_go_together(desk: _Desk) -> None:
    first = desk.call("a wait")
    await _at_work(desk.gate)
    others = [desk.call(f"{name} word") for name in "bcd"]
    await asyncio.sleep(0)
    desk.gate.go.set()
    assert await first == b"a wait together"
    assert await asyncio.gather(*others) == [b"b word together", b"c word together", b"d word together"]
    assert desk.groups == [["a wait"], ["b word", "c word", "d word"]]


async def test_an_error_is_of_its_call_alone(desk: _Desk) -> None:
    first = desk.call("a wait")
    await _at_work(desk.gate)
    good, bad = desk.call("b word"), desk.call("c bad")
    await asyncio.sleep(0)
    desk.gate.go.set()
    assert (await first, await good) == (b"a wait together", b"b word together")
    with pytest.raises(InvalidField):
        await bad


async def test_a_group_that_breaks_does_not_end_the_groups(desk: _Desk) -> None:
    with pytest.raises(RuntimeError):
        await desk.call("a broken")
    assert await desk.call("a word") == b"a word together"


async def test_a_call_beyond_the_queue_is_refused_at_once(desk: _Desk) -> None:
    first = desk.call("a wait")
    await _at_work(desk.gate)
    waiting = [desk.call(f"b {number}") for number in range(4)]
    await asyncio.sleep(0)
    with pytest.raises(Overloaded) as refused:
        await desk.call("b 5")
    assert (refused.value.details["queue_size"], refused.value.retry_after_s) == ("4", 0.25)
    desk.gate.go.set()
    assert len(await asyncio.gather(first, *waiting)) == 5


async def test_a_call_whose_client_left_before_its_turn_is_not_done(desk: _Desk) -> None:
    first = desk.call("a wait")
    await _at_work(desk.gate)
    left, stays = desk.call("b left"), desk.call("b stays")
    await asyncio.sleep(0)
    left.cancel()
    desk.gate.go.set()
    assert (await first, await stays) == (b"a wait together", b"b stays together")
    assert "b left" not in desk.done


async def test_a_client_that_leaves_while_its_group_is_at_work_leaves_the_others_to_it(desk: _Desk) -> None:
    leaving = desk.call("a wait")
    await _at_work(desk.gate)
    leaving.cancel()
    desk.gate.go.set()
    assert await desk.call("b word") == b"b word together"
    assert desk.done == ["a wait", "b word"]


async def test_a_call_alone_holds_back_its_lane_only_and_keeps_its_order(desk: _Desk) -> None:
    alone = desk.call("a alone-wait 1")
    await _at_work(desk.alone_gate)
    behind = [desk.call("a word 2"), desk.call("a word 3")]
    # Whoever is of another lane goes on, however often.
    assert await desk.call("b word") == b"b word together"
    assert await desk.call("c word") == b"c word together"
    assert not any(call.done() for call in (alone, *behind))
    desk.alone_gate.go.set()
    assert await alone == b"a alone-wait 1 alone"
    assert await asyncio.gather(*behind) == [b"a word 2 together", b"a word 3 together"]
    assert desk.done == ["b word", "c word", "a alone-wait 1", "a word 2", "a word 3"]


async def test_calls_alone_leave_a_thread_to_the_groups(desk: _Desk) -> None:
    waiting = [desk.call(f"{name} alone-wait") for name in "abc"]
    await _at_work(desk.alone_gate)
    assert await desk.call("d word") == b"d word together"
    desk.alone_gate.go.set()
    assert len(await asyncio.gather(*waiting)) == 3


async def test_a_large_call_runs_alone_and_before_those_of_its_lane(desk: _Desk) -> None:
    first = desk.call("a wait")
    await _at_work(desk.gate)
    calls = [desk.call("b large " + "x" * _LARGE), desk.call("b small"), desk.call("c small")]
    await asyncio.sleep(0)
    desk.gate.go.set()
    replies = await asyncio.gather(first, *calls)
    assert [reply.decode().split()[-1] for reply in replies] == ["together", "alone", "together", "together"]
    assert desk.done.index("b large " + "x" * 12) < desk.done.index("b small")


async def test_calls_after_the_end_are_told_so(desk: _Desk) -> None:
    assert await asyncio.to_thread(desk.workers.close, 10)
    with pytest.raises(Draining):
        await desk.call("a word")


@pytest.fixture
def reading_desk() -> Iterator[_Desk]:
    """A desk whose words have no order, with four threads."""
    workers = Workers(4, 4)
    desk = _Desk(workers, ordered=False)
    yield desk
    desk.gate.go.set()
    desk.alone_gate.go.set()
    assert workers.close(10)


async def test_words_without_order_that_take_long_are_overtaken(reading_desk: _Desk) -> None:
    slow = reading_desk.call("a wait")
    await _at_work(reading_desk.gate)
    assert await reading_desk.call("a word") == b"a word together"
    reading_desk.gate.go.set()
    assert await slow == b"a wait together"


async def test_half_of_the_threads_are_never_overtaking(reading_desk: _Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "_LONG_S", 0)
    slow = []
    for name in "ab":
        slow.append(reading_desk.call(f"{name} wait"))
        await _at_work(reading_desk.gate)
    # Each would go at once otherwise.
    others = [reading_desk.call("c word"), reading_desk.call("d word")]
    await asyncio.sleep(0)
    reading_desk.gate.go.set()
    assert len(await asyncio.gather(*slow, *others)) == 4
    assert reading_desk.groups == [["a wait"], ["b wait"], ["c word", "d word"]]


async def test_a_word_without_order_that_is_alone_holds_nobody_back(reading_desk: _Desk) -> None:
    alone = reading_desk.call("a alone-wait")
    await _at_work(reading_desk.alone_gate)
    assert await reading_desk.call("a word") == b"a word together"
    reading_desk.alone_gate.go.set()
    assert await alone == b"a alone-wait alone"
