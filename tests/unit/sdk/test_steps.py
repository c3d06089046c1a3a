"""An operation that is repeated repeats the ids of its steps."""

import pytest

import ramet
from ramet.orchestrator.steps import Steps


def steps(request_id: str | None) -> Steps:
    with Steps.begin(request_id) as begun:
        return begun


def test_the_same_request_id_makes_the_same_ids() -> None:
    one, other = steps("op"), steps("op")
    assert one.session_id == other.session_id
    assert one.id_of("tree") == other.id_of("tree") == "op:tree"
    assert one.id_of("tree") != one.id_of("session")
    assert one.repeatable


def test_operations_without_an_id_differ_and_are_no_repetition() -> None:
    assert steps(None).session_id != steps(None).session_id
    assert not steps(None).repeatable


def test_ids_are_legal_however_long_the_request_id_is() -> None:
    long = steps("x" * 128)
    assert len(long.id_of("session:" + "y" * 128)) <= 128
    assert long.id_of("tree") != long.id_of("session")
    assert len(long.session_id) == 32


def test_an_error_of_a_step_bears_the_id_of_the_whole() -> None:
    with pytest.raises(ramet.Unavailable) as caught, Steps.begin("op"):
        raise ramet.Unavailable("Gone.", request_id="op:tree")
    assert caught.value.request_id == "op"
