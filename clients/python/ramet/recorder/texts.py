"""What is kept of the texts that an agent hands over: masked, short, and not to be changed by anybody any more.

This runs on the agent's thread, so it does no more than that. ``summaries`` makes of it what is stored.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = [
    "ARGUMENT_CHARACTERS",
    "MESSAGE_CHARACTERS",
    "PREVIEW_CHARACTERS",
    "SUMMARY_MESSAGES",
    "TEXT_BYTES",
    "TOO_DEEP",
    "Head",
    "Input",
    "KeptCall",
    "KeptMessage",
    "Mask",
    "Texts",
    "bytes_of",
]

Mask = Callable[[str, str], str]
"""Takes a whole text and where it belongs, as ``query`` or ``input_params.password``; returns what may be kept."""

PREVIEW_CHARACTERS = 500
"""What is kept of a tool's output, in code points."""
MESSAGE_CHARACTERS = 500
"""What is kept of one message of a model's input, and of each text of its output, in code points."""
SUMMARY_MESSAGES = 32
"""Messages of a model's input that are kept: the first, and the last ones. How many were left out is told."""
ARGUMENT_CHARACTERS = 8192
"""What is kept of each text among a tool's arguments, in code points."""
ERROR_CHARACTERS = 4096
TEXT_BYTES = 64 * 1024
TOO_DEEP = "[nested too deep]"

_LEVELS = 12
_ITEMS = 64
_CALLS = 8
_MESSAGE_BYTES = 100
_UNMASKED = "[masking failed]"
_LARGEST_INTEGER = 10**300
"""Beyond it an integer is told as a text: servers refuse what no double can hold."""

Head = tuple[str, int]
"""The beginning of a text, one code point more than is stored where there are more, and the length of the whole."""


class KeptCall(NamedTuple):
    """A tool call that a model asks for."""

    name: str
    arguments: Head | None
    """Where they are a text."""
    plain: Any
    """Where they are not."""


KeptMessage = tuple[str | None, str, int, tuple[KeptCall, ...]]
"""Its role, the head and the length of its content, and the tool calls in it."""


class Input(NamedTuple):
    """A model's input: all messages, or the first one and the last ones."""

    total: int
    """How many there were."""
    messages: list[KeptMessage]
    size: int
    """Bytes that they may take."""


class Texts:
    """Keeps of what an agent hands over what may be stored; nothing passes that the mask has not seen whole."""

    def __init__(self, mask: Mask | None) -> None:
        self._mask = mask

    def head(self, value: object, where: str, characters: int) -> Head:
        """Returns the first code points of a text, one more than asked for where there are more, and its length."""
        text = _text(value)
        if self._mask is not None:
            text = self._masked(self._mask, text, where)
        length = len(text)
        return (text if length <= characters else text[: characters + 1]), length

    def limited(self, value: object, where: str) -> Head:
        """Keeps a text of which 65,536 bytes of UTF-8 are stored."""
        return self.head(value, where, TEXT_BYTES)

    def error(self, error: BaseException | str) -> Head:
        """Keeps what an error says, of which 4,096 code points are stored."""
        return self.head(error if isinstance(error, str) else _told(error), "error_message", ERROR_CHARACTERS)

    def short(self, value: object, where: str) -> Head:
        """Keeps a text of which 4,096 code points are stored."""
        return self.head(value, where, ERROR_CHARACTERS)

    def messages(self, messages: object) -> Input:
        """Keeps a model's input: of each message 500 code points; of more than 32 the first and the last 31."""
        if type(messages) is not list and (isinstance(messages, str) or not isinstance(messages, Sequence)):
            messages = [{"role": "user", "content": messages}]
        count = len(messages)
        if count > SUMMARY_MESSAGES:
            messages = [messages[0], *messages[count - SUMMARY_MESSAGES + 1 :]]
        kept: list[KeptMessage] = []
        size = 0
        for message in messages:
            # By far the usual thing, and in a long conversation there are many of them.
            if type(message) is dict and self._mask is None:
                content, role = message.get("content"), message.get("role")
                if type(content) is str and type(role) is str and not message.get("tool_calls"):
                    length = len(content)
                    if length > MESSAGE_CHARACTERS:
                        content = content[: MESSAGE_CHARACTERS + 1]
                    kept.append((role, content, length, ()))
                    size += _MESSAGE_BYTES + (len(content) if content.isascii() else 4 * len(content))
                    continue
            other = self._message(message)
            kept.append(other)
            size += _MESSAGE_BYTES + bytes_of(other[1]) + sum(map(call_size, other[3]))
        return Input(count, kept, size)

    def calls(self, calls: Sequence[object]) -> tuple[KeptCall, ...]:
        """Keeps the tool calls that a model asks for, 32 of them."""
        return tuple(self._call(each) for each in calls[:SUMMARY_MESSAGES])

    def text(self, value: object, where: str) -> Head:
        """Keeps a content, which may have parts, as one text of which 500 code points are stored."""
        return self.head(self._flat(value), where, MESSAGE_CHARACTERS)

    def plain(self, value: object, where: str, levels: int = _LEVELS) -> Any:
        """Copies any value: deep, long and strange parts shortened, every text masked."""
        # First the usual kinds, by a look at the type alone.
        if type(value) is str and self._mask is None:
            return value[: ARGUMENT_CHARACTERS + 1]
        if type(value) is dict and levels and self._mask is None:
            return {_text(key)[:128]: self.plain(each, where, levels - 1) for key, each in list(value.items())[:_ITEMS]}
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int | float):
            return self._number(value, where)
        if levels and isinstance(value, Mapping):
            return {
                _text(key)[:128]: self.plain(each, f"{where}.{key}", levels - 1)
                for key, each in list(value.items())[:_ITEMS]
            }
        if levels and isinstance(value, list | tuple | set | frozenset):
            return [self.plain(each, where, levels - 1) for each in list(value)[:_ITEMS]]
        if isinstance(value, Mapping | list | tuple | set | frozenset):
            # Not as it prints, either: that may be deeper than the interpreter goes.
            return TOO_DEEP
        return self.head(value, where, ARGUMENT_CHARACTERS)[0]

    def _masked(self, mask: Mask, text: str, where: str) -> str:
        try:
            return str(mask(text, where))
        except Exception:  # noqa: BLE001 - the mask is the application's; what it could not mask is not kept
            return _UNMASKED

    def _message(self, message: object) -> KeptMessage:
        role, content, calls = (part_of(message, name) for name in ("role", "content", "tool_calls"))
        if content is None and role is None:
            content = message
        head, length = self.text(content, "model_input")
        told = calls[:_CALLS] if calls and isinstance(calls, Sequence) and not isinstance(calls, str) else ()
        return None if role is None else _text(role)[:32], head, length, tuple(self._call(each) for each in told)

    def _flat(self, content: object) -> str:
        if content is None:
            return ""
        if isinstance(content, str):
            return content
        if isinstance(content, Sequence) and not isinstance(content, bytes | bytearray):
            return "\n".join(
                str(part_of(part, "text") or f"[{part_of(part, 'type') or 'part'}]")
                if not isinstance(part, str)
                else part
                for part in content[:_ITEMS]
            )
        return str(content)

    def _call(self, call: object) -> KeptCall:
        function = part_of(call, "function") or call
        arguments = part_of(function, "arguments")
        if arguments is None:
            arguments = part_of(function, "args") or part_of(function, "input")
        name = _text(part_of(function, "name") or "unknown")[:64]
        if isinstance(arguments, str):
            return KeptCall(name, self.head(arguments, "model_output.arguments", MESSAGE_CHARACTERS), None)
        return KeptCall(name, None, self.plain(arguments, "model_output.arguments"))

    def _number(self, value: Any, where: str) -> Any:
        finite = -_LARGEST_INTEGER < value < _LARGEST_INTEGER
        if not finite:
            return str(value) if isinstance(value, float) else "[large integer]"
        if self._mask is None:
            return value
        text = str(value)
        masked = self._masked(self._mask, text, where)
        return value if masked == text else masked


def bytes_of(text: str) -> int:
    """Returns how many bytes of UTF-8 a text may have at most."""
    return len(text) if text.isascii() else 4 * len(text)


def plain_size(value: Any) -> int:
    """Returns how many bytes a copy by ``Texts.plain`` may take, about."""
    if type(value) is str:
        return 50 + (len(value) if value.isascii() else 4 * len(value))
    size = 50
    if type(value) is dict:
        for key, each in value.items():
            size += len(key) + plain_size(each)
    elif type(value) is list:
        for each in value:
            size += plain_size(each)
    return size


def part_of(value: object, name: str) -> Any:
    """Returns a part of a mapping or an object; None: it has none."""
    # A plain dict is by far the usual thing, and asking for a Mapping is slow.
    if type(value) is dict:
        return value.get(name)
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _text(value: object) -> str:
    if type(value) is str:
        return value
    # Of a subclass the text that it is, whatever it says of itself.
    return str.__str__(value) if isinstance(value, str) else str(value)


def call_size(call: KeptCall) -> int:
    """Returns how many bytes a tool call may take, about."""
    return _MESSAGE_BYTES + (bytes_of(call.arguments[0]) if call.arguments else plain_size(call.plain))


def _told(error: BaseException) -> str:
    message = str(error)
    name = type(error).__name__
    return f"{name}: {message}" if message else name
