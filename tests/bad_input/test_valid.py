"""The valid requests, without which a refusal would prove nothing."""

import grpc
import pytest
from google.protobuf.message import Message

from ramet.session.v1.session_pb2 import AppendRecordsRequest, ForkSessionRequest
from ramet.tree.v1.tree_pb2 import CreateSessionRequest
from tests.bad_input.checks import check_discretion
from tests.bad_input.contract import ENDLESS, Rpc
from tests.bad_input.contract import SERVED as ALL_SERVED
from tests.bad_input.fields import kind_of
from tests.bad_input.places import places
from tests.bad_input.requests import Make, valid_requests
from tests.bad_input.stage import Stage

SERVED = [rpc for rpc in ALL_SERVED if rpc.name not in ENDLESS]

_MAKERS = [
    pytest.param(rpc, make, id=f"{rpc}-{number}") for rpc in SERVED for number, make in enumerate(valid_requests(rpc))
]


@pytest.mark.parametrize(("rpc", "make"), _MAKERS)
def test_valid_request_is_taken(stage: Stage, rpc: Rpc, make: Make) -> None:
    stage.succeeds(rpc, make(), stage.fresh_space())


@pytest.mark.parametrize("rpc", SERVED, ids=str)
def test_another_legal_value_is_never_a_bad_argument(stage: Stage, rpc: Rpc) -> None:
    space = stage.fresh_space()
    for place in places(rpc):
        other = kind_of(place.field).other
        if other is None:
            continue
        request = place.request()
        other(place.owner(request), place.field)
        for door in stage.doors:
            answer = door.send(rpc, request, space)
            # It may meet something else: a version that is not current, an id that names nothing.
            assert answer.code is not grpc.StatusCode.INVALID_ARGUMENT, f"{place}: {answer}"
            if answer.code is not grpc.StatusCode.OK:
                check_discretion(answer)


_MISSES = {
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.OUT_OF_RANGE,
}


@pytest.mark.parametrize("rpc", SERVED, ids=str)
def test_every_value_at_the_edge_is_taken_everywhere(stage: Stage, rpc: Rpc) -> None:
    space = stage.fresh_space()
    for number, place in enumerate(places(rpc)):
        for good in kind_of(place.field).good:
            request = place.request()
            _make_repeatable(request, f"{number} {good.name}")
            good.write(place.owner(request), place.field)
            answers = [door.send(rpc, request, space) for door in stage.doors]
            assert len({answer.refusal for answer in answers}) == 1, f"{place}, {good.name}: {answers}"
            if answers[0].code is not grpc.StatusCode.OK:
                assert good.may_miss, f"{place}, {good.name}: {answers[0]}"
                assert answers[0].code in _MISSES, f"{place}, {good.name}: {answers[0]}"
                check_discretion(answers[0])


def _make_repeatable(request: Message, new_id: str) -> None:
    """Lets a valid request be taken again and again in one world, where it would meet its own effect."""
    if isinstance(request, ForkSessionRequest | CreateSessionRequest):
        request.session_id = new_id
    if isinstance(request, AppendRecordsRequest):
        request.ClearField("expected_head_seq")
