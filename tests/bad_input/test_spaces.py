"""Call metadata that names no space, on every RPC."""

import grpc
import pytest

from tests.bad_input.checks import check_refusal
from tests.bad_input.contract import APPEND, SERVED, Rpc
from tests.bad_input.requests import valid_requests
from tests.bad_input.stage import Stage

# What a client library lets through: printable ASCII. The rest never leaves it.
_BAD = {
    "empty": ("", "INVALID_FIELD"),
    "129 characters": ("x" * 129, "TOO_LARGE"),
    "4,000 characters": ("x" * 4000, "TOO_LARGE"),
}


@pytest.mark.parametrize("name", _BAD)
@pytest.mark.parametrize("rpc", [*SERVED, APPEND], ids=str)
def test_bad_space_is_refused(stage: Stage, rpc: Rpc, name: str) -> None:
    space, reason = _BAD[name]

    answer = stage.refused(rpc, valid_requests(rpc)[0]().SerializeToString(), space)

    check_refusal(answer, grpc.StatusCode.INVALID_ARGUMENT, reason)


@pytest.mark.parametrize("rpc", [*SERVED, APPEND], ids=str)
def test_two_spaces_are_refused(stage: Stage, rpc: Rpc) -> None:
    answer = stage.refused(
        rpc, valid_requests(rpc)[0]().SerializeToString(), "one", metadata=[("ramet-space", "another")]
    )

    check_refusal(answer, grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD")
