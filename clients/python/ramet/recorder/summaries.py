"""Texts and JSON as they are stored: valid, cut, and marked where they were cut. This runs on the sender's thread."""

import json
from typing import Any

from ramet.recorder.texts import (
    ARGUMENT_CHARACTERS,
    MESSAGE_CHARACTERS,
    PREVIEW_CHARACTERS,
    SUMMARY_MESSAGES,
    TEXT_BYTES,
    Head,
    Input,
    KeptCall,
    KeptMessage,
)

__all__ = ["input_json", "limited", "name", "output_json", "plain_json", "preview", "short", "valid"]

_SHORT_CHARACTERS = 4096
_CUT = " …[cut]"


def valid(text: str) -> str:
    """Returns a text that UTF-8 can hold: a lone surrogate becomes U+FFFD, and so does NUL."""
    if "\0" in text:
        text = text.replace("\0", "�")
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # Pairs of surrogates, as other languages hand them over, become the character that they mean.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def name(value: object, characters: int) -> str:
    """Returns a name: valid, trimmed, of at most so many code points. Names are not masked."""
    return valid(str(value or "")[:characters]).strip()


def preview(head: Head) -> str:
    """Returns the first 500 code points of a text."""
    return valid(head[0])[:PREVIEW_CHARACTERS]


def limited(head: Head) -> str:
    """Returns a text of at most 65,536 bytes of UTF-8, marked where it was cut."""
    text = valid(head[0])
    if len(text) * 4 <= TEXT_BYTES or len(raw := text.encode()) <= TEXT_BYTES:
        return text
    return raw[: TEXT_BYTES - len(_CUT.encode())].decode(errors="ignore") + _CUT


def short(head: Head) -> str:
    """Returns a text of at most 4,096 code points, marked where it was cut."""
    return _cut(valid(head[0]), _SHORT_CHARACTERS)


def input_json(told: Input) -> str:
    """Returns the summary of a model's input: JSON, ``[{"role", "content", ...}]``.

    A content of more than 500 code points is cut to them and marked: ``truncated`` is true and ``length`` is the
    whole length. Of more than 32 messages the first and the last 31 are kept, and ``{"omitted": n}`` between them.
    """
    for characters in (MESSAGE_CHARACTERS, 200, 40):
        summary = [_message(each, characters) for each in told.messages]
        if told.total > SUMMARY_MESSAGES:
            summary.insert(1, {"omitted": told.total - SUMMARY_MESSAGES})
        if _fits(text := _dumps(summary)):
            return text
    return _dumps([{"omitted": told.total}])


def output_json(head: Head, calls: tuple[KeptCall, ...], count: int) -> str:
    """Returns the summary of a model's output: JSON, ``{"text", "tool_calls", ...}``, cut as messages are.

    ``count`` is how many tool calls there were.
    """
    for characters in (MESSAGE_CHARACTERS, 40):
        told = _text_fields("text", head, characters)
        if calls:
            told["tool_calls"] = [_call(each, characters) for each in calls]
            if count > len(calls):
                told["tool_calls_omitted"] = count - len(calls)
        if _fits(summary := _dumps(told)):
            return summary
    return _dumps({"truncated": True})


def plain_json(value: Any) -> str:
    """Returns JSON of a copy that ``Texts.plain`` made, its texts shortened until the whole is not too large."""
    for characters in (ARGUMENT_CHARACTERS, MESSAGE_CHARACTERS, 40):
        if _fits(text := _dumps(_plain(value, characters))):
            return text
    return _dumps({"truncated": True})


def _message(message: KeptMessage, characters: int) -> dict[str, Any]:
    role, head, length, calls = message
    told: dict[str, Any] = {"role": valid(role[:32]) if role is not None else "unknown"}
    told |= _text_fields("content", (head, length), characters)
    if calls:
        told["tool_calls"] = [_call(each, characters) for each in calls]
    return told


def _text_fields(field: str, head: Head, characters: int) -> dict[str, Any]:
    kept = valid(head[0])
    if len(kept) <= characters and head[1] <= len(head[0]):
        return {field: kept}
    return {field: kept[:characters], "truncated": True, "length": head[1]}


def _call(call: KeptCall, characters: int) -> dict[str, Any]:
    told: dict[str, Any] = {"name": valid(call.name)}
    if call.arguments is not None:
        told |= _text_fields("arguments", call.arguments, characters)
    elif call.plain is not None:
        told["arguments"] = _plain(call.plain, characters)
    return told


def _plain(value: Any, characters: int) -> Any:
    if isinstance(value, str):
        return _cut(valid(value), characters)
    if isinstance(value, dict):
        return {valid(key): _plain(each, characters) for key, each in value.items()}
    return [_plain(each, characters) for each in value] if isinstance(value, list) else value


def _cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[: characters - len(_CUT)] + _CUT


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))


def _dumps(value: object) -> str:
    return _ENCODER.encode(value)


def _fits(text: str) -> bool:
    # Within what a server takes of one field.
    return len(text) * 4 <= TEXT_BYTES or len(text.encode()) <= TEXT_BYTES
