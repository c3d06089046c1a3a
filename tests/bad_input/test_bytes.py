"""Bytes that are no such message, and text that is not UTF-8, on every RPC."""

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor

from tests.bad_input.checks import check_refusal
from tests.bad_input.contract import APPEND, SERVED, Rpc
from tests.bad_input.places import Place, all_places, places
from tests.bad_input.stage import Stage

_NO_MESSAGE = {
    "only high bits": b"\xff" * 8,
    "a length beyond the end": b"\x0a\x7f",
    "a field without its value": b"\x0a",
    "field number zero": b"\x00",
    "the end of a group that never began": b"\x0c",
    "a wire type that does not exist": b"\x0f\x01",
}

_NOT_UTF8 = {
    "bytes of no character": b"\xff\xfe",
    "a lone surrogate": b"\xed\xa0\x80",
    "a NUL in two bytes": b"\xc0\x80",
    "a cut character": b"\xe4\xbd",
    "beyond Unicode": b"\xf4\x90\x80\x80",
}

_TEXTS = [place for place in [*all_places(), *places(APPEND)] if place.field.type == FieldDescriptor.TYPE_STRING]

_MARK = "mark-of-the-bytes-to-replace"


@pytest.mark.parametrize("name", _NO_MESSAGE)
@pytest.mark.parametrize("rpc", [*SERVED, APPEND], ids=str)
def test_bytes_that_are_no_message_are_refused(stage: Stage, rpc: Rpc, name: str) -> None:
    answer = stage.refused(rpc, _NO_MESSAGE[name])

    check_refusal(answer, grpc.StatusCode.INVALID_ARGUMENT, "INVALID_MESSAGE")


@pytest.mark.parametrize("name", _NOT_UTF8)
@pytest.mark.parametrize(
    "place",
    [place for place in [*all_places(), *places(APPEND)] if place.field.type == FieldDescriptor.TYPE_STRING],
    ids=str,
)
def test_text_that_is_not_utf8_is_refused(stage: Stage, place: Place, name: str) -> None:
    request = place.request()
    owner = place.owner(request)
    if place.field.is_repeated:
        getattr(owner, place.field.name).append(_MARK)
    else:
        setattr(owner, place.field.name, _MARK)
    # As long as the mark, so that the lengths in the message still hold.
    bad = _NOT_UTF8[name].ljust(len(_MARK), b"x")
    body = request.SerializeToString().replace(_MARK.encode(), bad)
    assert bad in body

    answer = stage.refused(place.rpc, body)

    check_refusal(answer, grpc.StatusCode.INVALID_ARGUMENT, "INVALID_MESSAGE")
