"""Taking the fields of a line one by one, and the names by which lines tell of origins."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from ramet_server.domain.errors import InvalidField
from ramet_server.domain.moments import read_moment


class Reader:
    """Takes the fields of an object one by one, and knows which are left; raises InvalidField."""

    def __init__(self, told: Mapping[str, Any], *, kind: bool = True) -> None:
        self._told = told
        self._left = set(told) - ({"kind"} if kind else set())

    def has(self, name: str) -> bool:
        """Tells whether a field is there."""
        return name in self._told

    def take(self, name: str, kind: type) -> Any:
        """Returns a field of a type."""
        value = self._told.get(name)
        # A bool is an int to Python, but not here.
        if type(value) is not kind:
            raise InvalidField(f"{name} is missing or of the wrong type.", field=name)
        self._left.discard(name)
        return value

    def text(self, name: str) -> str:
        """Returns a text."""
        return str(self.take(name, str))

    def text_or_none(self, name: str) -> str | None:
        """Returns a text, None where it is left out."""
        return self.text(name) if name in self._told else None

    def number(self, name: str) -> int:
        """Returns a whole number."""
        return int(self.take(name, int))

    def moment(self, name: str) -> datetime:
        """Returns a time."""
        return read_moment(self.take(name, str), name)

    def moment_or_none(self, name: str) -> datetime | None:
        """Returns a time, None where it is left out."""
        return self.moment(name) if name in self._told else None

    def texts(self, name: str) -> list[str] | None:
        """Returns a list of texts, None where it is left out."""
        if name not in self._told:
            return None
        found = self.take(name, list)
        if not all(isinstance(each, str) for each in found):
            raise InvalidField(f"{name} is a list of texts.", field=name)
        return list(found)

    def objects(self, name: str) -> list[Mapping[str, Any]]:
        """Returns a list of objects."""
        found = self.take(name, list)
        if not all(isinstance(each, dict) for each in found):
            raise InvalidField(f"{name} is a list of objects.", field=name)
        return list(found)

    def word(self, name: str, words: Callable[[str], Any]) -> Any:
        """Returns a word of a closed list."""
        text = self.text(name)
        try:
            return words(text)
        except ValueError:
            raise InvalidField(f"{name} has no such value.", field=name) from None

    def name(self) -> str:
        """Returns the name of an origin."""
        if ("session" in self._told) == ("lost" in self._told):
            raise InvalidField("Either session or lost tells whose record it is.", field="session")
        if "session" in self._told:
            return session_name(self.text("session"))
        return lost_name(self.number("lost"))

    def done(self) -> None:
        """Raises InvalidField where a field was not taken."""
        if self._left:
            raise InvalidField(f"{min(self._left)} is not known.", field=min(self._left))


def session_name(session_id: str) -> str:
    """Returns the name of the origin of a session that is in the archive."""
    return f"session {session_id}"


def lost_name(number: int) -> str:
    """Returns the name of an origin whose session is not in the archive."""
    return f"lost {number}"


def session_of(name: str) -> str | None:
    """Returns the id of the session that a name is of; None for a lost one."""
    kind, _, session_id = name.partition(" ")
    return session_id if kind == "session" else None
