"""A call knows whether anybody still waits for it."""

import time

import pytest

from ramet_server.domain.call import Call, Cancellation
from ramet_server.domain.errors import Cancelled, DeadlinePassed


def test_a_call_without_deadline_never_ends_by_itself() -> None:
    call = Call("default")
    assert call.remaining() is None
    call.check()


def test_a_passed_deadline_is_told() -> None:
    call = Call("default", deadline=time.monotonic() - 1)
    assert call.remaining() == 0
    with pytest.raises(DeadlinePassed):
        call.check()


def test_a_cancelled_call_is_told_before_its_deadline() -> None:
    call = Call("default", deadline=time.monotonic() - 1)
    call.cancelled.set()
    with pytest.raises(Cancelled):
        call.check()


def test_two_calls_share_neither_id_nor_cancellation() -> None:
    one, other = Call("default"), Call("default")
    one.cancelled.set()
    other.check()
    assert one.call_id != other.call_id


def test_listeners_hear_a_cancellation_once_also_if_they_come_late() -> None:
    cancellation = Cancellation()
    heard: list[str] = []

    def early() -> None:
        heard.append("early")

    def gone() -> None:
        heard.append("gone")

    cancellation.listen(early)
    cancellation.listen(gone)
    cancellation.unlisten(gone)
    cancellation.set()
    cancellation.listen(lambda: heard.append("late"))
    assert heard == ["early", "late"]
