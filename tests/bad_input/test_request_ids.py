"""Every mutation sent twice with one request_id: the same body changes nothing, any other body is refused."""

from collections.abc import Iterator

import grpc
import pytest

from tests.bad_input.checks import check_refusal
from tests.bad_input.contract import MUTATIONS, Rpc
from tests.bad_input.fields import kind_of
from tests.bad_input.places import Place, places
from tests.bad_input.requests import Make, valid_requests
from tests.bad_input.stage import Stage
from tests.bad_input.writes import Write

_LONGEST = "r" * 128


def _other_bodies(rpc: Rpc) -> Iterator[tuple[Place, Write]]:
    for place in places(rpc):
        other = kind_of(place.field).other
        if other is not None:
            yield place, other


@pytest.mark.parametrize(
    ("rpc", "make"),
    [
        pytest.param(rpc, make, id=f"{rpc}-{number}")
        for rpc in MUTATIONS
        for number, make in enumerate(valid_requests(rpc))
    ],
)
def test_same_body_gets_the_first_answer_and_changes_nothing(stage: Stage, rpc: Rpc, make: Make) -> None:
    space = stage.fresh_space()
    request = make()
    request.request_id = _LONGEST  # type: ignore[attr-defined]  # every mutation has one
    first = stage.succeeds(rpc, request, space)
    before = stage.snapshots()

    again = stage.succeeds(rpc, request, space)

    assert stage.snapshots() == before
    for door, one, other in zip(stage.doors, first, again, strict=True):
        expected = [rpc.response_class.FromString(message) for message in one.messages]
        assert [rpc.response_class.FromString(message) for message in other.messages] == expected, door.name


@pytest.mark.parametrize("rpc", MUTATIONS, ids=str)
def test_without_a_request_id_it_is_a_new_call(stage: Stage, rpc: Rpc) -> None:
    space = stage.fresh_space()
    stage.succeeds(rpc, valid_requests(rpc)[0](), space)

    held = [snapshot["request_log"] for snapshot in stage.snapshots()]
    for door in stage.doors:
        door.send(rpc, valid_requests(rpc)[0](), space)

    assert [snapshot["request_log"] for snapshot in stage.snapshots()] == held


@pytest.mark.parametrize("rpc", MUTATIONS, ids=str)
def test_a_body_with_any_other_value_is_refused(stage: Stage, rpc: Rpc) -> None:
    space = stage.fresh_space()
    request = valid_requests(rpc)[0]()
    request.request_id = "twice"  # type: ignore[attr-defined]  # every mutation has one
    stage.succeeds(rpc, request, space)

    for place, other in _other_bodies(rpc):
        changed = place.request()
        changed.request_id = "twice"  # type: ignore[attr-defined]
        other(place.owner(changed), place.field)
        assert changed != request, place
        answer = stage.refused(rpc, changed.SerializeToString(), space)
        assert answer.reason == "REQUEST_ID_REUSED", f"{place}: {answer}"
        check_refusal(answer, grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED")


@pytest.mark.parametrize("rpc", MUTATIONS, ids=str)
def test_another_method_of_the_service_is_refused(stage: Stage, rpc: Rpc) -> None:
    space = stage.fresh_space()
    request = valid_requests(rpc)[0]()
    request.request_id = "shared"  # type: ignore[attr-defined]  # every mutation has one
    stage.succeeds(rpc, request, space)

    others = [other for other in MUTATIONS if other.service == rpc.service]
    other = others[others.index(rpc) - 1]
    another = valid_requests(other)[0]()
    another.request_id = "shared"  # type: ignore[attr-defined]
    answer = stage.refused(other, another.SerializeToString(), space)
    check_refusal(answer, grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED")


@pytest.mark.parametrize("rpc", MUTATIONS, ids=str)
def test_a_refused_request_keeps_no_request_id(stage: Stage, rpc: Rpc) -> None:
    space = stage.fresh_space()
    empty = rpc.request_class()
    empty.request_id = "again"  # type: ignore[attr-defined]  # every mutation has one
    good = valid_requests(rpc)[0]()
    good.request_id = "again"  # type: ignore[attr-defined]
    # A request of nothing else is refused by most; PutSession and CreateSession make something of it.
    if rpc.name not in ("SessionStorage.PutSession", "SessionTree.CreateSession"):
        stage.refused(rpc, empty.SerializeToString(), space)

    stage.succeeds(rpc, good, space)
