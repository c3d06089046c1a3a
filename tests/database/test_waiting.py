"""The lock that is fair, and the interrupter that strikes only whom it should."""

import time
from collections.abc import Iterator
from threading import Event, Thread

import pytest

from ramet_server.database.fair_lock import FairLock
from ramet_server.database.interrupter import Interrupter
from tests.database import counters

_PATIENCE_S = 30


@pytest.fixture
def interrupter() -> Iterator[Interrupter]:
    """An interrupter that is closed afterwards."""
    interrupter = Interrupter()
    yield interrupter
    interrupter.close()


def test_waiters_get_their_turn_in_the_order_they_came() -> None:
    lock = FairLock()
    order: list[int] = []

    def take_turn(number: int) -> None:
        assert lock.acquire(_PATIENCE_S)
        order.append(number)
        lock.release()

    assert lock.acquire(None)
    threads = []
    for number in range(5):
        thread = Thread(target=take_turn, args=(number,))
        thread.start()
        threads.append(thread)
        # Each waits in the queue before the next comes.
        give_up_at = time.monotonic() + _PATIENCE_S
        while len(lock._waiters) <= number:
            assert time.monotonic() < give_up_at
    lock.release()
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3, 4]


def test_a_wait_that_ends_leaves_the_lock_to_others() -> None:
    lock = FairLock()
    assert lock.acquire(0)
    assert not lock.acquire(0.01)
    assert not lock.acquire(0)
    lock.release()
    assert lock.acquire(0)


def test_a_unit_is_struck_after_its_deadline_again_and_again_until_it_ends(interrupter: Interrupter) -> None:
    strikes: list[int] = []
    twice = Event()

    def strike(number: int) -> None:
        strikes.append(number)
        if number == 2:
            twice.set()

    deadline = time.monotonic() + 0.05
    watch = interrupter.watch(counters.call(0.05), strike)
    assert twice.wait(_PATIENCE_S)
    assert time.monotonic() >= deadline
    assert watch.interrupted
    interrupter.forget(watch)
    seen = len(strikes)
    # Another unit is struck after this one, so the interrupter had its chance to strike again.
    other = Event()
    later = interrupter.watch(counters.call(0.5), lambda _: other.set())
    assert other.wait(_PATIENCE_S)
    interrupter.forget(later)
    assert strikes[:2] == [1, 2]
    assert len(strikes) == seen


def test_an_earlier_deadline_that_comes_later_is_kept(interrupter: Interrupter) -> None:
    patient = interrupter.watch(counters.call(_PATIENCE_S * 2), lambda _: None)
    struck = Event()
    hasty = interrupter.watch(counters.call(0.05), lambda _: struck.set())
    assert struck.wait(_PATIENCE_S)
    assert (patient.interrupted, hasty.interrupted) == (False, True)
    interrupter.forget(patient)
    interrupter.forget(hasty)


def test_a_cancelled_call_is_struck_at_once(interrupter: Interrupter) -> None:
    struck = Event()
    call = counters.call()
    watch = interrupter.watch(call, lambda _: struck.set())
    call.cancelled.set()
    assert struck.wait(_PATIENCE_S)
    interrupter.forget(watch)


def test_a_unit_that_is_being_struck_ends_only_after_the_strike(interrupter: Interrupter) -> None:
    begun, go_on, ended = Event(), Event(), Event()

    def strike(_: int) -> None:
        begun.set()
        go_on.wait(_PATIENCE_S)

    watch = interrupter.watch(counters.call(0), strike)
    assert begun.wait(_PATIENCE_S)

    def end() -> None:
        interrupter.forget(watch)
        ended.set()

    thread = Thread(target=end)
    thread.start()
    assert not ended.wait(0.1)
    go_on.set()
    thread.join()
    assert ended.is_set()
