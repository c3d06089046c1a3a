"""JSON that a caller hands over: checked strictly, kept as the text it came as."""

from __future__ import annotations

import pytest

from ramet.session.v1 import session_pb2 as pb
from ramet.session.v1.session_pb2_grpc import SessionStorageStub
from tests.conformance.refusing import bad_field
from tests.conformance.session.making import append, calling, context, fork, get, history, put, user

KEPT = [
    pytest.param('{"b":1,"aa":2,"a":3}', id="key order"),
    pytest.param("9007199254740993", id="2^53+1"),
    pytest.param('{"id": 2512292042121000001}', id="a long id"),
    pytest.param('{"n": 1}', id="1 stays 1"),
    pytest.param('{"n": 1.0, "m": 1e2, "k": -0}', id="number spellings"),
    pytest.param('{"a": 1, "a": 2}', id="a key twice"),
    pytest.param('  { "a" : [ 1 , 2 ] }\n', id="white space"),
    pytest.param('"\\u4f60\\u597d \\ud83d\\ude00 \\/ \\n"', id="escapes"),
    pytest.param('"你好 😀"', id="plain text"),
    pytest.param("null", id="null"),
    pytest.param("[]", id="an empty list"),
    pytest.param('"NaN and Infinity and \\\\u0000 as text"', id="words within text"),
    pytest.param("1" + "0" * 300, id="a number of 301 digits"),
]

REFUSED = [
    pytest.param("NaN", id="NaN"),
    pytest.param('{"a": [1, NaN]}', id="NaN inside"),
    pytest.param("Infinity", id="Infinity"),
    pytest.param('{"a": -Infinity}', id="-Infinity"),
    pytest.param("1e400", id="1e400"),
    pytest.param('{"a": -1e400}', id="-1e400"),
    pytest.param('"\\ud800"', id="a lone high surrogate"),
    pytest.param('"\\udc00"', id="a lone low surrogate"),
    pytest.param('"\\udc00\\ud800"', id="surrogates the wrong way round"),
    pytest.param('{"\\ud83d": 1}', id="a lone surrogate in a key"),
    pytest.param('"\\u0000"', id="NUL"),
    pytest.param("{", id="cut off"),
    pytest.param("{} {}", id="two values"),
    pytest.param("{'a': 1}", id="single quotes"),
    pytest.param("[1,]", id="a trailing comma"),
    pytest.param("01", id="a leading zero"),
    pytest.param(" ", id="white space only"),
    pytest.param('"tab\tinside"', id="a bare control character"),
    pytest.param("[" * 65 + "]" * 65, id="nested too deep"),
    pytest.param("[" * 100_000, id="nested far too deep"),
]


class TestJson:
    @pytest.mark.parametrize("text", KEPT)
    def test_the_same_bytes_come_back(self, storage: SessionStorageStub, session: str, text: str) -> None:
        """phoenix#7254: arguments keep the order of their keys. pi#8943: integers beyond 2^53 are exact, 1 stays 1."""
        record = calling("c1", arguments_json=text)
        record.parts_json = record.metadata_json = text
        append(storage, session, record)
        put(storage, session, metadata_json=text)
        fork(storage, session, "child")
        for stored in [*history(storage, session), *context(storage, session).records]:
            assert (stored.parts_json, stored.metadata_json) == (text, text)
            assert stored.tool_calls[0].arguments_json == text
        assert get(storage, session).metadata_json == text

    @pytest.mark.parametrize("text", REFUSED)
    def test_what_is_no_json_is_refused_and_later_reads_work(
        self, storage: SessionStorageStub, session: str, text: str
    ) -> None:
        """langflow#11905: NaN, Infinity, 1e400. claude-code#69927: a lone surrogate must not poison the session."""
        append(storage, session, user("before"))
        with bad_field("records[0].tool_calls[0].arguments_json"):
            append(storage, session, calling("c1", arguments_json=text))
        for name in ("parts_json", "metadata_json"):
            record = user()
            setattr(record, name, text)
            with bad_field(f"records[0].{name}"):
                append(storage, session, record)
        with bad_field("session.metadata_json"):
            put(storage, session, metadata_json=text)
        with bad_field("metadata_json"):
            storage.ForkSession(pb.ForkSessionRequest(source_session_id=session, metadata_json=text))
        assert [record.content for record in history(storage, session)] == ["before"]
        assert get(storage, session).metadata_json == ""

    def test_nesting_up_to_sixty_four_levels_is_kept(self, storage: SessionStorageStub, session: str) -> None:
        text = "[" * 64 + "]" * 64
        assert put(storage, session, metadata_json=text).metadata_json == text

    def test_empty_is_absent(self, storage: SessionStorageStub, session: str) -> None:
        append(storage, session, calling("c1", arguments_json=""))
        [stored] = history(storage, session)
        assert (stored.parts_json, stored.metadata_json, stored.tool_calls[0].arguments_json) == ("", "", "")
