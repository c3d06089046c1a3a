"""Every field of every RPC with every bad value of its kind, on every backend at once."""

from collections.abc import Iterator
from dataclasses import dataclass

import grpc
import pytest

from tests.bad_input.checks import check_field, check_refusal
from tests.bad_input.contract import APPEND, SERVED, STREAM, Rpc
from tests.bad_input.fields import gaps, kind_of
from tests.bad_input.kinds import Bad
from tests.bad_input.places import Place, places
from tests.bad_input.stage import Stage


@dataclass(frozen=True)
class Case:
    """A bad value in a place."""

    place: Place
    bad: Bad

    def __str__(self) -> str:
        return f"{self.place}-{self.bad.name}"


def _cases(rpc: Rpc) -> Iterator[Case]:
    for place in places(rpc):
        for bad in kind_of(place.field).bad:
            yield Case(place, bad)


@pytest.mark.parametrize("case", [case for rpc in SERVED for case in _cases(rpc)], ids=str)
def test_bad_value_is_refused_alike_everywhere_and_changes_nothing(stage: Stage, case: Case) -> None:
    request = case.place.request()
    suffix = case.bad.write(case.place.owner(request), case.place.field)

    answer = stage.refused(case.place.rpc, request.SerializeToString())

    check_refusal(answer, grpc.StatusCode.INVALID_ARGUMENT, case.bad.reason)
    allowed = [case.place.path + suffix]
    if case.bad.at_owner:
        allowed.append(case.place.owner_path.split(".tool_calls")[0])
    check_field(answer, *allowed)


@pytest.mark.parametrize("rpc", [*SERVED, APPEND, STREAM], ids=str)
def test_every_field_is_known_and_none_forgotten(rpc: Rpc) -> None:
    assert gaps(rpc) == []
