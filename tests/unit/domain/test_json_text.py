"""JSON is checked strictly, and alike on every backend because no backend checks it."""

import pytest

from ramet_server.domain.errors import InvalidField, TooLarge
from ramet_server.domain.json_text import NESTING_LIMIT, check_json

_MIB = 1024 * 1024


@pytest.mark.parametrize(
    "text",
    [
        "null",
        "true",
        '""',
        "0",
        "-0",
        "1",
        "1.5e300",
        "1e-400",
        "9007199254740993",
        "2512292042121000001",
        "1" * 300,
        '{"b":1,"aa":2,"a":3}',
        '{"a":1,"a":2}',
        ' { "a" : [ 1 , 2 ] }\r\n\t',
        '"\\ud83d\\ude00"',
        '"\\uD83D\\uDE00 \\u00e9"',
        '"\\\\u0000"',
        '"\\\\\\\\ud800"',
        '"\\/\\b\\f\\n\\r\\t\\""',
        '"héllo 你好 😀"',
        '"\x7f"',
        "[" * NESTING_LIMIT + "]" * NESTING_LIMIT,
        '{"a":' * NESTING_LIMIT + "1" + "}" * NESTING_LIMIT,
        "[" + ",".join(["[]"] * 1000) + "]",
        '"' + "[" * 1000 + '"',
        '"\\"' + "{" * 1000 + '"',
    ],
)
def test_legal_json_comes_back_as_it_came(text: str) -> None:
    assert check_json(text, "metadata_json", _MIB) == text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not JSON"),
        (" ", "not JSON"),
        ("NaN", "NaN"),
        ("[Infinity]", "NaN or Infinity"),
        ("-Infinity", "NaN or Infinity"),
        ("1e400", "too large for a double"),
        ("[-1e400]", "too large for a double"),
        ("1" * 400, "too large for a double"),
        ("1" * 5000, "too large for a double"),
        ("01", "not JSON"),
        ("1.", "not JSON"),
        (".5", "not JSON"),
        ("+1", "not JSON"),
        ("0x10", "not JSON"),
        ("\uff11", "not JSON"),
        ("1 2", "not JSON"),
        ("tru", "not JSON"),
        ("'a'", "not JSON"),
        ("[1,]", "not JSON"),
        ('{"a":1,}', "not JSON"),
        ("{a:1}", "not JSON"),
        ('{"a"}', "not JSON"),
        ('"\\x"', "not JSON"),
        ('"\\u12"', "not JSON"),
        ('"\t"', "not JSON"),
        ('"open', "not JSON"),
        ("\ufeff1", "not JSON"),
        ("\x0c1", "not JSON"),
        ("/* */1", "not JSON"),
        ('"\\u0000"', "NUL"),
        ('"\\\\\\u0000"', "NUL"),
        ('{"\\u0000":1}', "NUL"),
        ('"\\ud83d"', "surrogate"),
        ('"\\ude00\\ud83d"', "surrogate"),
        ('"\\ud83d\\u0041"', "surrogate"),
        ('"\\ud83d\\ud83d\\ude00"', "surrogate"),
        ('"\\uDFFF"', "surrogate"),
        ('"\0"', "NUL"),
        ('"\ud800"', "surrogate"),
        ("[" * (NESTING_LIMIT + 1) + "]" * (NESTING_LIMIT + 1), "nested"),
        ('[{"a":' * 33 + "1" + "}]" * 33, "nested"),
        ("[" * 100_000 + "]" * 100_000, "nested"),
        ("[" * 100_000, "nested"),
        ('{"a":' * 100_000, "nested"),
        ("]" * 100_000, "not JSON"),
    ],
)
def test_other_text_is_refused_with_its_field(text: str, says: str) -> None:
    with pytest.raises(InvalidField, match=says) as refusal:
        check_json(text, "records[2].metadata_json", _MIB)
    assert refusal.value.field == "records[2].metadata_json"


def test_a_refusal_never_repeats_the_text() -> None:
    with pytest.raises(InvalidField) as refusal:
        check_json('{"secret": hunter2}', "metadata_json", _MIB)
    assert "hunter2" not in str(refusal.value)


def test_the_limit_counts_bytes_of_utf8() -> None:
    text = '"' + "é" * 10 + '"'
    assert check_json(text, "metadata_json", 22) == text
    with pytest.raises(TooLarge) as refusal:
        check_json(text, "metadata_json", 21)
    assert refusal.value.details == {"limit": "21", "unit": "bytes"}
