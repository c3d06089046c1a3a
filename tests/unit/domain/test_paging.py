"""Page tokens: opaque, bound to their query, and harmless when forged."""

import base64
import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet_server.domain.errors import InvalidField, InvalidPageToken
from ramet_server.domain.paging import PageToken, check_page_size, query_fingerprint

_QUERY = query_fingerprint("ListSessions", "default", {"status": "ACTIVE"}, ["created_at", "desc"])


def _forged(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@pytest.mark.parametrize(("asked", "given_size"), [(0, 100), (1, 1), (100, 100), (1000, 1000), (2**31 - 1, 1000)])
def test_a_page_size_is_defaulted_and_cut(asked: int, given_size: int) -> None:
    assert check_page_size(asked, 100, 1000) == given_size


def test_a_negative_page_size_is_refused() -> None:
    with pytest.raises(InvalidField) as refusal:
        check_page_size(-1, 100, 1000)
    assert refusal.value.field == "page_size"


def test_a_token_brings_its_position_back() -> None:
    moment = datetime(2026, 11, 30, 21, 4, 5, 123457, tzinfo=timezone(timedelta(hours=8)))
    token = PageToken(_QUERY, (moment, "main", -7)).encode()
    back = PageToken.decode(token, _QUERY, (datetime, str, int))
    assert back == PageToken(_QUERY, (moment.astimezone(UTC), "main", -7))


def test_the_empty_token_is_the_first_page() -> None:
    assert PageToken.decode("", _QUERY, (str,)) is None


def test_a_token_of_another_query_is_refused() -> None:
    token = PageToken(_QUERY, ("main",)).encode()
    with pytest.raises(InvalidPageToken, match="another query") as refusal:
        PageToken.decode(token, query_fingerprint("ListSessions", "other"), (str,))
    assert refusal.value.field == "page_token"


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "!!!!",
        "é",
        "a" * 5000,
        _forged([]),
        _forged({"a": 1}),
        _forged([_QUERY, "main"]),
        _forged([_QUERY, ["größe"]]),
        _forged([_QUERY, ["\ud800"]]),
        _forged([_QUERY, []]),
        _forged([_QUERY, [1]]),
        _forged([_QUERY, [None]]),
        _forged([_QUERY, ["main", "more"]]),
        _forged([_QUERY, ["a\0"]]),
        _forged([7, ["main"]]),
        base64.urlsafe_b64encode(b"[" * 1400).decode(),
    ],
)
def test_a_damaged_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidPageToken):
        PageToken.decode(token, _QUERY, (str,))


@pytest.mark.parametrize("part", [True, 2**63, -(2**63) - 1, 1.5, "1"])
def test_a_forged_number_is_refused(part: object) -> None:
    for kind in (int, datetime):
        with pytest.raises(InvalidPageToken):
            PageToken.decode(_forged([_QUERY, [part]]), _QUERY, (kind,))


def test_a_forged_moment_beyond_all_calendars_is_refused() -> None:
    with pytest.raises(InvalidPageToken):
        PageToken.decode(_forged([_QUERY, [2**62]]), _QUERY, (datetime,))


@given(st.text(max_size=60))
def test_no_text_makes_decoding_fail_otherwise(token: str) -> None:
    with suppress(InvalidPageToken):
        assert PageToken.decode(token, _QUERY, (str,)) is None or token


def test_a_fingerprint_tells_queries_apart() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    parts: list[tuple[object, ...]] = [("a",), ("b",), ("a", "b"), ("a", None), ("a", moment), (["a"],), ({"a": 1},)]
    assert len({query_fingerprint(*each) for each in parts}) == len(parts)
    assert query_fingerprint({"a": 1, "b": 2}) == query_fingerprint({"b": 2, "a": 1})
