"""Taking out of an archive what must not leave: a function over every text and every JSON of every line."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeAlias

from ramet_server.archiving.lines import Line
from ramet_server.domain.errors import RametError
from ramet_server.domain.json_text import check_json
from ramet_server.domain.text import check_text
from telemetry.rules.archiving.columns import DIAGNOSIS, FEEDBACK, STEP, TOOL, Field, Holds

Redaction: TypeAlias = Callable[[str, str, str], str]
"""Gets the kind of a line, the path of a field and its text, and returns the text that leaves."""

_ANY_SIZE = 1 << 40
_TEXT, _JSON = Holds.TEXT, Holds.JSON

_PATHS: Mapping[str, Mapping[str, Holds]] = {
    "session": {"label": _TEXT, "tags.*": _TEXT, "metadata_json": _JSON, "slots.*.content": _TEXT},
    "record": {
        "content": _TEXT,
        "parts_json": _JSON,
        "tool_calls.*.name": _TEXT,
        "tool_calls.*.arguments_json": _JSON,
        "name": _TEXT,
        "metadata_json": _JSON,
    },
    "node": {"label": _TEXT, "config.system_prompt": _TEXT, "config.skills.*": _TEXT},
}
_COLUMNS: Mapping[str, Mapping[str, Field]] = {
    "diagnosis": DIAGNOSIS,
    "step": STEP,
    "tool": TOOL,
    "feedback": FEEDBACK,
}


class BadRedaction(Exception):
    """A redaction function cannot be used, or made something that cannot be stored."""


def load_redaction(text: str) -> Redaction:
    """Returns the function that ``package.module:function`` names; raises BadRedaction."""
    module, _, name = text.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise BadRedaction(f"{text!r} names no function as in package.module:function: {error}") from error
    if not callable(found):
        raise BadRedaction(f"{text!r} is not a function.")
    redaction: Redaction = found
    return redaction


def redact(line: Line, redaction: Redaction) -> Line:
    """Returns a line with every text and JSON of it as the function wants it; ids, times and numbers stay."""
    kind = line["kind"]
    paths = _PATHS.get(kind) or {
        name: field.holds for name, field in _COLUMNS.get(kind, {}).items() if field.holds in (_TEXT, _JSON)
    }
    changed: Any = line
    for path, holds in paths.items():
        changed = _changed(changed, path.split("."), _Place(kind, path, holds, redaction))
    if "tags" in changed:
        # They are a set; two may have become one.
        changed = {**changed, "tags": sorted(set(changed["tags"]))}
    return dict(changed)


class _Place:
    """One path of one kind of line."""

    def __init__(self, kind: str, path: str, holds: Holds, redaction: Redaction) -> None:
        self._kind = kind
        self._path = path
        self._holds = holds
        self._redaction = redaction

    def of(self, text: str) -> str:
        try:
            made = self._redaction(self._kind, self._path, text)
        except Exception as error:
            # It is somebody else's function. What it raises may tell the very text that must not leave.
            fault = type(error).__name__
            raise BadRedaction(f"The redaction of {self._kind}.{self._path} failed: {fault}.") from error
        if not isinstance(made, str):
            raise BadRedaction(f"The redaction of {self._kind}.{self._path} made no text.")
        try:
            # An empty text stands for no arguments.
            if self._holds is _JSON and made:
                return check_json(made, self._path, _ANY_SIZE)
            return check_text(made, self._path, _ANY_SIZE)
        except RametError as error:
            raise BadRedaction(f"The redaction of {self._kind}: {error.message}") from error


def _changed(value: Any, path: list[str], place: _Place) -> Any:
    if not path:
        return place.of(value) if isinstance(value, str) and value else value
    head, rest = path[0], path[1:]
    if isinstance(value, list) and head == "*":
        return [_changed(each, rest, place) for each in value]
    if isinstance(value, dict):
        names = value.keys() if head == "*" else value.keys() & {head}
        return {**value, **{name: _changed(value[name], rest, place) for name in names}}
    return value
