"""Texts as they may be stored: valid, masked, cut, and marked where they were cut."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["MESSAGE_CHARACTERS", "PREVIEW_CHARACTERS", "SUMMARY_MESSAGES", "Mask", "Texts"]

Mask = Callable[[str, str], str]
"""Takes a whole text and where it belongs, as ``query`` or ``input_params.password``; returns what may be kept."""

PREVIEW_CHARACTERS = 500
"""What is kept of a tool's output, in code points."""
MESSAGE_CHARACTERS = 500
"""What is kept of one message of a model's input, and of each text of its output, in code points."""
SUMMARY_MESSAGES = 32
"""Messages of a model's input that are kept: the first, and the last ones. How many were left out is told."""
ERROR_CHARACTERS = 4096
TEXT_BYTES = 64 * 1024

_CUT = " …[cut]"
_LEVELS = 12
_ITEMS = 64
_UNMASKED = "[masking failed]"
_LARGEST_INTEGER = 10**300
"""Beyond it an integer is told as a text: servers refuse what no double can hold."""


class Texts:
    """Makes texts and JSON of what an agent hands over; nothing passes that the mask has not seen."""

    def __init__(self, mask: Mask | None) -> None:
        self._mask = mask

    def whole(self, value: object, where: str) -> str:
        """Returns a text as it may be kept: masked, without NUL and lone surrogates."""
        text = value if isinstance(value, str) else str(value)
        if self._mask is not None:
            try:
                text = str(self._mask(text, where))
            except Exception:  # noqa: BLE001 - the mask is the application's; what it could not mask is not kept
                text = _UNMASKED
        return valid(text)

    def preview(self, value: object, where: str, characters: int = PREVIEW_CHARACTERS) -> str:
        """Returns the first code points of a text."""
        return self._short(value, where, characters)[:characters]

    def limited(self, value: object, where: str, size: int = TEXT_BYTES) -> str:
        """Returns a text of at most so many bytes of UTF-8, marked where it was cut."""
        text = self.whole(value, where)
        if len(text) * 4 <= size or len(raw := text.encode()) <= size:
            return text
        return raw[: size - len(_CUT.encode())].decode(errors="ignore") + _CUT

    def error(self, error: BaseException | str) -> str:
        """Returns what an error says, in at most 4,096 code points."""
        told = error if isinstance(error, str) else _told(error)
        return self._cut(told, "error_message", ERROR_CHARACTERS)

    def short(self, value: object, where: str) -> str:
        """Returns a text of at most 4,096 code points, marked where it was cut."""
        return self._cut(value, where, ERROR_CHARACTERS)

    def name(self, value: object, characters: int) -> str:
        """Returns a name: valid, trimmed, of at most so many code points. Names are not masked."""
        return valid(str(value or "")[:characters]).strip()

    def messages(self, messages: object) -> str:
        """Returns the summary of a model's input: JSON, ``[{"role", "content", ...}]``.

        A content of more than 500 code points is cut to them and marked: ``truncated`` is true and ``length`` is the
        whole length. Of more than 32 messages the first and the last 31 are kept, and ``{"omitted": n}`` between them.
        """
        if type(messages) is not list and (isinstance(messages, str) or not isinstance(messages, Sequence)):
            messages = [{"role": "user", "content": messages}]
        kept = (
            list(messages)
            if len(messages) <= SUMMARY_MESSAGES
            else [
                messages[0],
                None,
                *messages[len(messages) - SUMMARY_MESSAGES + 1 :],
            ]
        )
        for characters in (MESSAGE_CHARACTERS, 200, 40):
            summary = [
                {"omitted": len(messages) - SUMMARY_MESSAGES} if each is None else self._message(each, characters)
                for each in kept
            ]
            if fits(text := dumps(summary)):
                return text
        return dumps([{"omitted": len(messages)}])

    def output(self, text: object, tool_calls: Sequence[object]) -> str:
        """Returns the summary of a model's output: JSON, ``{"text", "tool_calls", ...}``, cut as messages are."""
        for characters in (MESSAGE_CHARACTERS, 40):
            told = self._text_fields("text", "" if text is None else text, "model_output", characters)
            if tool_calls:
                told["tool_calls"] = [self._tool_call(each, characters) for each in tool_calls[:SUMMARY_MESSAGES]]
                if len(tool_calls) > SUMMARY_MESSAGES:
                    told["tool_calls_omitted"] = len(tool_calls) - SUMMARY_MESSAGES
            if fits(summary := dumps(told)):
                return summary
        return dumps({"truncated": True})

    def json(self, value: object, where: str) -> str:
        """Returns JSON of any value: deep, long and strange parts shortened, every text masked."""
        for characters in (8192, MESSAGE_CHARACTERS, 40):
            if fits(text := dumps(self._plain(value, where, characters, _LEVELS))):
                return text
        return dumps({"truncated": True})

    def _message(self, message: object, characters: int) -> dict[str, Any]:
        if type(message) is dict:
            role, content, calls = message.get("role"), message.get("content"), message.get("tool_calls")
        else:
            role, content, calls = (_part(message, name) for name in ("role", "content", "tool_calls"))
        # By far the usual thing, and in a long conversation there are many of them.
        if (
            self._mask is None
            and not calls
            and isinstance(content, str)
            and isinstance(role, str)
            and len(content) <= characters
            and content.isascii()
            and "\0" not in content
            and role.isidentifier()
        ):
            return {"role": role[:32], "content": content}
        told: dict[str, Any] = {"role": valid(str(role))[:32] if role is not None else "unknown"}
        if content is None and role is None:
            content = message
        told |= self._text_fields("content", self._flat(content), "model_input", characters)
        if calls and isinstance(calls, Sequence) and not isinstance(calls, str):
            told["tool_calls"] = [self._tool_call(each, characters) for each in calls[:8]]
        return told

    def _text_fields(self, name: str, value: object, where: str, characters: int) -> dict[str, Any]:
        text = self._flat(value)
        kept = self._short(text, where, characters)
        if len(kept) <= characters:
            return {name: kept}
        return {name: kept[:characters], "truncated": True, "length": len(text)}

    def _flat(self, content: object) -> str:
        """Makes one text of a content that may have parts."""
        if content is None:
            return ""
        if isinstance(content, str):
            return content
        if isinstance(content, Sequence) and not isinstance(content, bytes | bytearray):
            return "\n".join(
                str(_part(part, "text") or f"[{_part(part, 'type') or 'part'}]") if not isinstance(part, str) else part
                for part in content[:_ITEMS]
            )
        return str(content)

    def _tool_call(self, call: object, characters: int) -> dict[str, Any]:
        function = _part(call, "function") or call
        arguments = _part(function, "arguments")
        if arguments is None:
            arguments = _part(function, "args") or _part(function, "input")
        told: dict[str, Any] = {"name": valid(str(_part(function, "name") or "unknown"))[:64]}
        if isinstance(arguments, str):
            told |= self._text_fields("arguments", arguments, "model_output.arguments", characters)
        elif arguments is not None:
            told["arguments"] = self._plain(arguments, "model_output.arguments", characters, _LEVELS)
        return told

    def _plain(self, value: object, where: str, characters: int, levels: int) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int | float):
            return self._number(value, where)
        if levels and isinstance(value, Mapping):
            return {
                valid(str(key))[:128]: self._plain(each, f"{where}.{key}", characters, levels - 1)
                for key, each in list(value.items())[:_ITEMS]
            }
        if levels and isinstance(value, list | tuple | set | frozenset):
            return [self._plain(each, where, characters, levels - 1) for each in list(value)[:_ITEMS]]
        if isinstance(value, Mapping | list | tuple | set | frozenset):
            # Not as it prints, either: that may be deeper than the interpreter goes.
            return "[nested too deep]"
        return self._cut(value, where, characters)

    def _number(self, value: Any, where: str) -> Any:
        finite = -_LARGEST_INTEGER < value < _LARGEST_INTEGER
        if not finite:
            return str(value) if isinstance(value, float) else "[large integer]"
        if self._mask is None:
            return value
        text = str(value)
        masked = self.whole(text, where)
        return value if masked == text else masked

    def _cut(self, value: object, where: str, characters: int) -> str:
        text = self._short(value, where, characters)
        return text if len(text) <= characters else text[: characters - len(_CUT)] + _CUT

    def _short(self, value: object, where: str, characters: int) -> str:
        """Returns what decides a text of so many code points: the mask sees it whole, without one only its head."""
        text = value if isinstance(value, str) else str(value)
        if self._mask is None:
            # One more, so that the caller sees that there was more.
            return valid(text[: characters + 1])
        return self.whole(text, where)


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


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))


def dumps(value: object) -> str:
    """Returns compact strict JSON."""
    return _ENCODER.encode(value)


def fits(text: str) -> bool:
    """Tells whether a text is within what a server takes of one field."""
    return len(text) * 4 <= TEXT_BYTES or len(text.encode()) <= TEXT_BYTES


def _part(value: object, name: str) -> Any:
    # A plain dict is by far the usual thing, and asking for a Mapping is slow.
    if type(value) is dict:
        return value.get(name)
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _told(error: BaseException) -> str:
    message = str(error)
    name = type(error).__name__
    return f"{name}: {message}" if message else name
