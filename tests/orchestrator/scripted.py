"""Models that follow a script, and what tests watch: what a model read, and the calls that a client made."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc

import ramet
from ramet import Record, ToolCall
from ramet.orchestrator import ModelDelta, ModelReply, Tool

Line = str | ModelReply | Exception | Callable[[Sequence[Record]], Any]


@dataclass
class Scripted:
    """A model that gives the lines of its script in turn, the last one again and again."""

    script: list[Line]
    read: list[list[Record]] = field(default_factory=list)
    offered: list[list[str]] = field(default_factory=list)
    name: str = "scripted-1"
    provider: str = "nobody"

    async def __call__(self, messages: Sequence[Record], tools: Sequence[Tool]) -> ModelReply:
        self.read.append(list(messages))
        self.offered.append([tool.name for tool in tools])
        line = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if callable(line):
            line = line(messages)
            if asyncio.iscoroutine(line):
                line = await line
        if isinstance(line, Exception):
            raise line
        return ModelReply(line) if isinstance(line, str) else line

    @property
    def texts(self) -> list[list[tuple[str, str]]]:
        """What it read, call by call, as roles and texts."""
        return [[(each.role.value, each.content) for each in messages] for messages in self.read]


def model(*script: Line) -> Scripted:
    return Scripted(list(script) or ["ok"])


def calls(*called: tuple[str, str], text: str = "", prefix: str = "c") -> ModelReply:
    """A reply that calls tools: names and arguments."""
    return ModelReply(text, tuple(ToolCall(f"{prefix}{at}", name, json) for at, (name, json) in enumerate(called)))


@dataclass
class Gate:
    """A place where something waits until a test lets it go on."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self) -> None:
        self.reached.set()
        try:
            await self.opened.wait()
        finally:
            self.left.set()

    async def is_reached(self) -> None:
        await asyncio.wait_for(self.reached.wait(), 30)


def tool(name: str, function: Callable[..., Any]) -> Tool:
    return Tool(name, f"Does {name}.", {"type": "object"}, function)


async def streaming(parts: Sequence[ModelDelta | Callable[[], Awaitable[None]]]) -> AsyncGenerator[ModelDelta, None]:
    for part in parts:
        if isinstance(part, ModelDelta):
            yield part
        else:
            await part()


class Calls(grpc.aio.UnaryUnaryClientInterceptor):
    """Notes the calls that a client makes; one method may be held at a gate, before or after it takes effect."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.before: dict[str, Gate] = {}
        self.lose_reply_of = ""
        """The next call of this method takes effect, and its reply is lost."""

    async def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        method = details.method.decode() if isinstance(details.method, bytes) else details.method
        name = method.rsplit("/", 1)[1]
        self.made.append(name)
        if name in self.before:
            await self.before[name].wait()
        call = await continuation(details, request)
        if name == self.lose_reply_of:
            self.lose_reply_of = ""
            await call
            raise grpc.aio.AioRpcError(
                grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), "the connection broke"
            )
        return call


async def history(client: ramet.Client, session_id: str) -> list[tuple[str, str]]:
    """What a session shows, as roles and texts."""
    return [(each.role.value, each.content) async for each in client.sessions.iter_records(session_id)]
