"""The valid requests, without which a refusal would prove nothing."""

import grpc
import pytest

from tests.bad_input.checks import check_discretion
from tests.bad_input.contract import SERVED, Rpc
from tests.bad_input.fields import kind_of
from tests.bad_input.places import places
from tests.bad_input.requests import Make, valid_requests
from tests.bad_input.stage import Stage

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
