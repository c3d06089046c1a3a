"""Page tokens that are whole, but of another list: each RPC's token at every other RPC, and at another query."""

from collections.abc import Iterator

import grpc
import pytest
from google.protobuf.message import Message

from tests.bad_input.checks import check_field, check_refusal
from tests.bad_input.contract import SERVED, Rpc
from tests.bad_input.fields import kind_of
from tests.bad_input.places import Place, places
from tests.bad_input.requests import valid_requests
from tests.bad_input.stage import SPACE, Stage

_PAGED = [rpc for rpc in SERVED if "page_token" in rpc.request.fields_by_name]

_NOT_OF_THE_QUERY = {"page_size", "page_token", "offset"}
"""What may change from page to page: offset is behind once a token is there."""


def _tokens(stage: Stage, rpc: Rpc, space: str = SPACE) -> dict[str, str]:
    """Returns, by backend, the token of an RPC's second page."""
    tokens = {}
    for door in stage.doors:
        answer = door.send(rpc, _request(rpc), space)
        assert answer.code is grpc.StatusCode.OK, answer
        token = getattr(rpc.response_class.FromString(answer.messages[0]), "next_page_token")  # noqa: B009 - by descriptor
        assert token, f"the valid request of {rpc} must leave a second page"
        tokens[door.name] = token
    return tokens


def _request(rpc: Rpc) -> Message:
    return valid_requests(rpc)[0]()


def _set_token(request: Message, token: str) -> Message:
    request.page_token = token  # type: ignore[attr-defined]  # every paged request has one
    return request


def _other_queries(rpc: Rpc) -> Iterator[Place]:
    for place in places(rpc):
        if place.field.name not in _NOT_OF_THE_QUERY and kind_of(place.field).other is not None:
            yield place


@pytest.mark.parametrize("rpc", _PAGED, ids=str)
@pytest.mark.parametrize("donor", _PAGED, ids=str)
def test_token_of_another_list_is_refused(stage: Stage, donor: Rpc, rpc: Rpc) -> None:
    tokens = _tokens(stage, donor)
    bodies = {name: _set_token(_request(rpc), token).SerializeToString() for name, token in tokens.items()}
    if rpc is donor:
        for door in stage.doors:
            assert door.call(rpc, bodies[door.name], SPACE).code is grpc.StatusCode.OK
        return

    answer = stage.refused(rpc, bodies)

    check_refusal(answer, grpc.StatusCode.INVALID_ARGUMENT, "INVALID_PAGE_TOKEN")
    check_field(answer, "page_token")


@pytest.mark.parametrize("place", [place for rpc in _PAGED for place in _other_queries(rpc)], ids=str)
def test_token_of_another_query_is_refused(stage: Stage, place: Place) -> None:
    bodies = {}
    for name, token in _tokens(stage, place.rpc).items():
        request = place.request()
        other = kind_of(place.field).other
        assert other is not None
        other(place.owner(request), place.field)
        bodies[name] = _set_token(request, token).SerializeToString()

    answer = stage.refused(place.rpc, bodies)

    check_refusal(answer, grpc.StatusCode.INVALID_ARGUMENT, "INVALID_PAGE_TOKEN")
    check_field(answer, "page_token")


@pytest.mark.parametrize("rpc", _PAGED, ids=str)
def test_token_of_another_space_is_refused(stage: Stage, rpc: Rpc) -> None:
    tokens = _tokens(stage, rpc, stage.fresh_space())

    answer = stage.refused(
        rpc, {name: _set_token(_request(rpc), token).SerializeToString() for name, token in tokens.items()}
    )

    check_refusal(answer, grpc.StatusCode.INVALID_ARGUMENT, "INVALID_PAGE_TOKEN")


@pytest.mark.parametrize("rpc", _PAGED, ids=str)
def test_token_that_was_tampered_with_is_refused_or_harmless(stage: Stage, rpc: Rpc) -> None:
    for door in stage.doors:
        token = _tokens(stage, rpc)[door.name]
        for at in range(len(token)):
            changed = token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]
            answer = door.call(rpc, _set_token(_request(rpc), changed).SerializeToString(), SPACE)
            if answer.code is not grpc.StatusCode.OK:
                check_refusal(answer, grpc.StatusCode.INVALID_ARGUMENT, "INVALID_PAGE_TOKEN")
