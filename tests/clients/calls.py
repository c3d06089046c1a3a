"""The example calls that clients in other languages make: calls.json, in the JSON mapping of protobuf.

They run in the order of the file over an empty space. Each tells the reply that it gets (or the replies of a stream, or
the refusal); a reply may hold more than what is told.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class ExampleCall:
    """One call of one RPC, and what comes of it."""

    method: str
    """Such as ``ramet.tree.v1.SessionTree/GetNode``."""
    request: dict[str, Any] | list[dict[str, Any]]
    """A list for a stream of requests, though one of a single request may be given by itself."""
    reply: dict[str, Any] | None = None
    replies: list[dict[str, Any]] | None = None
    refused: dict[str, str] | None = None
    """The code and the reason."""

    def requests(self) -> list[dict[str, Any]]:
        """Returns what the call sends."""
        return self.request if isinstance(self.request, list) else [self.request]

    def expected(self) -> list[dict[str, Any]]:
        """Returns what the call streams, or its one reply."""
        return self.replies if self.replies is not None else [self.reply or {}]


def example_calls() -> list[ExampleCall]:
    """Reads calls.json."""
    return [ExampleCall(**entry) for entry in json.loads((Path(__file__).parent / "calls.json").read_text())]


def differences(expected: Any, actual: Any, path: str = "reply") -> list[str]:
    """Tells where a reply lacks what is expected of it. Lists must be equally long."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return [
            found
            for name, value in expected.items()
            for found in differences(value, actual.get(name), f"{path}.{name}")
        ]
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        return [
            found
            for place, (left, right) in enumerate(zip(expected, actual, strict=True))
            for found in differences(left, right, f"{path}[{place}]")
        ]
    return [] if expected == actual else [f"{path} is {actual!r}, not {expected!r}"]
