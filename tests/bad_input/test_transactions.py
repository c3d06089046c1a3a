"""Every field of every step of a transaction with every bad value of its kind."""

from collections.abc import Iterator

import grpc
import pytest
from google.protobuf.message import Message

from ramet.session.v1 import session_pb2 as pb
from tests.bad_input.checks import check_discretion
from tests.bad_input.contract import SERVED, Rpc, rpcs
from tests.bad_input.doors import Answer
from tests.bad_input.fields import kind_of
from tests.bad_input.kinds import Bad
from tests.bad_input.places import Place, places
from tests.bad_input.stage import SPACE, Stage

_TRANSACT = next(rpc for rpc in rpcs() if rpc.name == "SessionStorage.Transact")

_STEPS: dict[str, str] = {
    field.message_type.full_name: field.name
    for field in pb.TransactRequest.DESCRIPTOR.fields
    if field.message_type is not None
}
"""The step that takes a message."""

_RPCS = [rpc for rpc in SERVED if rpc.request.full_name in _STEPS]


def _cases(rpc: Rpc) -> Iterator[tuple[Place, Bad]]:
    for place in places(rpc):
        for bad in kind_of(place.field).bad:
            yield place, bad


def _stream(step: str, request: Message) -> list[bytes]:
    """Returns the messages of a transaction of one step."""
    message = pb.TransactRequest()
    getattr(message, step).CopyFrom(request)
    if request.DESCRIPTOR.fields_by_name.get("request_id") is not None:
        getattr(message, step).ClearField("request_id")
    begin = pb.TransactRequest(begin=pb.TransactBegin(request_id="bad-input"))
    return [each.SerializeToString() for each in (begin, message, pb.TransactRequest(commit=pb.TransactCommit()))]


def test_every_step_is_tried() -> None:
    assert {_STEPS[rpc.request.full_name] for rpc in _RPCS} == set(_STEPS.values()) - {"begin", "commit"}


@pytest.mark.parametrize("rpc", _RPCS, ids=str)
def test_a_bad_value_ends_a_transaction_as_it_would_the_single_call(stage: Stage, rpc: Rpc) -> None:
    step = _STEPS[rpc.request.full_name]
    problems: list[str] = []
    before = stage.snapshots()
    for place, bad in _cases(rpc):
        if place.field.name == "request_id":
            continue
        request = place.request()
        suffix = bad.write(place.owner(request), place.field)
        allowed = [f"{step}.{place.path}{suffix}"]
        if bad.at_owner:
            allowed.append(f"{step}.{place.owner_path}".split(".tool_calls")[0])
        for door in stage.doors:
            answer = door.stream(_TRANSACT, _stream(step, request), SPACE)
            check_discretion(answer)
            problems += _problems(f"{place}-{bad.name} on {door.name}", answer, bad, allowed)
    assert problems == []
    assert stage.snapshots() == before


def _problems(case: str, answer: Answer, bad: Bad, allowed: list[str]) -> Iterator[str]:
    if (answer.code, answer.reason) != (grpc.StatusCode.INVALID_ARGUMENT, bad.reason):
        yield f"{case}: {answer}"
    # What is larger than a whole transaction may be is refused before anything is made of it.
    elif answer.fields and answer.fields[0] not in allowed:
        yield f"{case}: one of {allowed}, not {answer.fields}"
    elif not answer.fields and "'unit', 'bytes'" not in answer.details:
        yield f"{case}: no field is named: {answer}"
