"""JSON that users hand over: checked strictly, then kept as the very text that came."""

import json
import math
import re

from ramet_server.domain.errors import InvalidField
from ramet_server.domain.text import check_text

NESTING_LIMIT = 64
"""Most arrays and objects that may stand inside each other."""

_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_ONE_KIND = bytes.maketrans(b"{}", b"[]")

# All text up to the first escape that no store can keep: NUL, or half of a surrogate pair.
_GOOD_ESCAPES = re.compile(
    r"(?:[^\\]++"
    r"|\\[^u]"
    r"|\\u(?!0000|[dD][89a-fA-F])[0-9a-fA-F]{4}"
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r")*+"
)


def check_json(text: str, field: str, max_bytes: int, levels: int = NESTING_LIMIT) -> str:
    """Returns the text unchanged if it is one strict JSON value of at most ``max_bytes`` in UTF-8.

    Refused: what RFC 8259 refuses (so NaN, Infinity and the empty text), numbers that no double can
    hold (1e400), escapes of NUL and lone surrogates, and more than ``levels`` of nesting. Integers
    beyond 2^53 are legal, and so is a key that comes twice.
    """
    check_text(text, field, max_bytes)
    # First the depth: the parser below calls itself once per level.
    if _too_deep(text, levels):
        raise InvalidField(f"{field} is nested deeper than {levels} levels.", field=field)
    try:
        _STRICT.decode(text)
    except json.JSONDecodeError as fault:
        raise InvalidField(f"{field} is not JSON: fault at character {fault.pos + 1}.", field=field) from None
    except _Unstorable as fault:
        raise InvalidField(f"{field} {fault}.", field=field) from None
    if "\\u" in text:
        good = _GOOD_ESCAPES.match(text)
        if good is None or good.end() != len(text):
            raise InvalidField(f"{field} escapes a NUL or a lone surrogate.", field=field)
    return text


class _Unstorable(Exception):
    """Says which rule a number breaks."""


def _too_deep(text: str, levels: int) -> bool:
    if text.count("[") + text.count("{") <= levels:
        return False
    brackets = _STRING.sub("", text).encode().translate(_ONE_KIND, _NOT_BRACKETS)
    # Each round takes the innermost level away, at the speed of bytes.replace.
    for _ in range(levels):
        brackets = brackets.replace(b"[]", b"")
    return b"[]" in brackets or brackets.count(b"[") > levels


def _refuse_constant(_name: str) -> None:
    raise _Unstorable("holds NaN or Infinity, which are not JSON")


def _check_number(digits: str) -> None:
    # Never int(): it is slow on long digits, and refuses more than 4,300 of them.
    if math.isinf(float(digits)):
        raise _Unstorable("holds a number that is too large for a double")


def _forget(pairs: list[tuple[str, object]]) -> None:
    """Keeps nothing of an object: only whether it parses matters."""


# Made once: json.loads makes one for each text, and a short one took 9.6 us so, here 3.9.
_STRICT = json.JSONDecoder(
    parse_constant=_refuse_constant,
    parse_float=_check_number,
    parse_int=_check_number,
    object_pairs_hook=_forget,
)
