"""Strategies for records: phrases of a conversation, in which tool calls meet their answers, or do not."""

from __future__ import annotations

from hypothesis import strategies as st

from ramet.session.v1 import session_pb2 as s

contents = st.sampled_from(["hi", "größer", "漢字 🌱", "x" * 50, ""])
metadata = st.sampled_from(["", '{"b": 1, "a": 9007199254740993}', "[]"])

_PHRASES = [
    # u: a user; a: an assistant; s: a system record; (xy): an assistant's calls x and y; x: the answer to call x.
    "(p)p",
    "u",
    "(pq)pq",
    "(pq)qp",
    "(p)(q)pq",
    "(p)(p)pp",
    "(p)",
    "(pq)p",
    "p",
    "(p)u",
    "(pq)pu",
    "q",
    "a",
    "us",
    "pu",
    "qu",
]

_arguments = st.sampled_from(["", '{"b":1, "a":12345678901234567890}'])


@st.composite
def histories(draw: st.DrawFn) -> list[s.Record]:
    """Draws one to four phrases as records."""
    text = "".join(draw(st.lists(st.sampled_from(_PHRASES), min_size=1, max_size=4)))
    return [_record(draw, token) for token in _tokens(text)]


def _tokens(text: str) -> list[str]:
    """Splits phrases into one token a record."""
    found: list[str] = []
    while text:
        end = text.index(")") + 1 if text[0] == "(" else 1
        found.append(text[:end])
        text = text[end:]
    return found


def _record(draw: st.DrawFn, token: str) -> s.Record:
    if token.startswith("("):
        calls = [s.ToolCall(id=one, name=f"tool {one}", arguments_json=draw(_arguments)) for one in token[1:-1]]
        return s.Record(role=s.ROLE_ASSISTANT, tool_calls=calls)
    record = s.Record(content=draw(contents))
    if token in "pq":
        record.role, record.tool_call_id, record.name = s.ROLE_TOOL, token, "tool"
        return record
    record.role = {"u": s.ROLE_USER, "a": s.ROLE_ASSISTANT, "s": s.ROLE_SYSTEM}[token]
    if draw(st.booleans()):
        record.parts_json = '[{"n": 1.0}]'
        record.metadata_json = draw(metadata)
        record.client_time.seconds, record.client_time.nanos = 1_700_000_000, 123_456_000
    return record
