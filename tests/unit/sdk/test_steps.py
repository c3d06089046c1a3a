"""An operation that is repeated repeats the ids of its steps."""

from ramet.orchestrator.steps import Steps


def test_the_same_request_id_makes_the_same_ids() -> None:
    one, other = Steps.of("op"), Steps.of("op")
    assert one.session_id == other.session_id
    assert one.id_of("tree") == other.id_of("tree") == "op:tree"
    assert one.id_of("tree") != one.id_of("session")


def test_operations_without_an_id_differ() -> None:
    assert Steps.of(None).session_id != Steps.of(None).session_id


def test_ids_are_legal_however_long_the_request_id_is() -> None:
    steps = Steps.of("x" * 128)
    assert len(steps.id_of("session:" + "y" * 128)) <= 128
    assert steps.id_of("tree") != steps.id_of("session")
    assert len(steps.session_id) == 32
