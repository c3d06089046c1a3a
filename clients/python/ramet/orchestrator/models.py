"""What a turn needs of a language model and of the tools that it may call."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from ramet.client import Record, ToolCall, Usage

__all__ = ["Model", "ModelDelta", "ModelReply", "StreamingModel", "Tool"]


@dataclass(frozen=True)
class Tool:
    """A function that the model may call, as it is told to the model."""

    name: str
    """Unique among the tools of a turn."""
    description: str
    """What it does, for the model."""
    parameters: Mapping[str, Any]
    """JSON schema of an object, whose properties are the function's keyword arguments."""
    function: Callable[..., Any] = field(repr=False)
    """Plain (run on a thread) or asynchronous. A text that it returns is handed on, anything else as JSON."""


@dataclass(frozen=True)
class ModelReply:
    """What a model answers."""

    text: str = ""
    """May be empty where tools are called."""
    tool_calls: tuple[ToolCall, ...] = ()
    """Empty: this is the final answer of the turn."""
    usage: Usage | None = None
    """None: unknown."""
    thought: str = ""
    """Its reasoning, where it tells some; recorded, and not kept in the conversation."""
    parts_json: str | None = None
    """Content that is more than text, kept with the record: a JSON list in the provider's shape."""
    model: str = ""
    """The name that the provider tells."""


@dataclass(frozen=True)
class ModelDelta:
    """A part of an answer as it streams: texts and calls add up, of all else the last word counts."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    """Whole calls, each once."""
    usage: Usage | None = None
    thought: str = ""
    parts_json: str | None = None
    model: str = ""


class Model(Protocol):
    """A language model: any callable that takes messages and tools.

    It returns an awaitable of a :class:`ModelReply`, as an ``async def`` does, or an asynchronous iterator of
    :class:`ModelDelta`, as an ``async def`` with ``yield`` does. What it raises ends the turn and is raised as it is.
    Attributes ``name`` and ``provider``, where it has them, are recorded.
    """

    def __call__(
        self, messages: Sequence[Record], tools: Sequence[Tool], /
    ) -> Awaitable[ModelReply] | AsyncIterator[ModelDelta]:
        """Asks the model once."""
        ...


class StreamingModel(Model, Protocol):
    """A model that streams where that is wanted, and else answers in one piece."""

    def stream(self, messages: Sequence[Record], tools: Sequence[Tool], /) -> AsyncIterator[ModelDelta]:
        """Asks the model once, part by part."""
        ...


AnyModel: TypeAlias = Model | StreamingModel
