"""What models and tools say, made into what a server keeps: no NUL, no half of a surrogate pair, strict JSON."""

import json
import math

__all__ = ["is_storable_json", "storable_text"]

_LEVELS = 64


def storable_text(text: str) -> str:
    """Returns the text with U+FFFD in place of what cannot be kept."""
    text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    if text.isascii():
        return text
    # Pairs of surrogates, as a stream may hand them over, become the character that they mean.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def is_storable_json(text: object) -> bool:
    """Tells whether a server takes a text as JSON: strict, no number beyond a double, not deeper than 64 levels."""
    if not isinstance(text, str) or storable_text(text) != text:
        return False
    try:
        return _fits(json.loads(text, parse_constant=_refuse))
    except (ValueError, RecursionError, OverflowError):
        return False


def _refuse(name: str) -> None:
    raise ValueError(name)


def _fits(value: object) -> bool:
    waiting = [(value, 0)]
    while waiting:
        each, level = waiting.pop()
        if isinstance(each, str):
            if storable_text(each) != each:
                return False
        elif isinstance(each, int | float):
            if math.isinf(float(each)):
                return False
        elif isinstance(each, dict | list):
            if level == _LEVELS:
                return False
            inner = [*each.keys(), *each.values()] if isinstance(each, dict) else each
            waiting += [(part, level + 1) for part in inner]
    return True
