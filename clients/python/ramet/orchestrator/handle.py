"""A session as its turns see it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass

from ramet.client import Client, Record, Role, Slot
from ramet.client.arguments import of_kind, refused, text
from ramet.orchestrator.calling import call
from ramet.orchestrator.config import Consolidate, Runtime
from ramet.orchestrator.lines import Lines
from ramet.orchestrator.models import Model
from ramet.orchestrator.replies import Reply, TurnEvent
from ramet.orchestrator.steps import Steps
from ramet.orchestrator.turn import Turn
from ramet.recorder import Recorder

__all__ = ["SessionHandle"]


class SessionHandle:
    """One session and what runs it, made by :meth:`Orchestrator.session`. It holds nothing and needs no closing."""

    def __init__(
        self, client: Client, lines: Lines, recorder: Recorder | None, session_id: str, runtime: Runtime
    ) -> None:
        self._client = client
        self._lines = lines
        self._recorder = recorder
        self._id = session_id
        self._runtime = runtime

    @property
    def id(self) -> str:
        """The session."""
        return self._id

    @property
    def runtime(self) -> Runtime:
        """What runs it, all layers laid over each other."""
        return self._runtime

    async def send(self, message: str | Record, *, model: Model | None = None, request_id: str | None = None) -> Reply:
        """Runs one turn: asks the model, lets it call tools until it gives its final answer, and appends all of it.

        The model reads the system prompt, the session's label, an insight, the history without incomplete tool-call
        groups, and the message. ``model`` is the session's own where not given. Everything is appended at once and
        the insight that was read consumed with it: a turn that fails, or is cancelled before that, writes nothing.

        Turns of one session run one after another within one orchestrator. Where anybody else appended meanwhile, the
        turn is refused (Aborted, STALE_HEAD) and nothing is written: its answer was made for another history, so
        whether to send again is the caller's choice. After an error that leaves the outcome open, or a cancellation
        during the append, send again with the same ``request_id`` (an error bears it): a turn that was written is
        then returned without asking the model.

        Raises what the model raises; what a tool raises is told to the model instead.
        """
        return await self._run(message, model, request_id, _nobody, streams=False)

    async def stream(
        self, message: str | Record, *, model: Model | None = None, request_id: str | None = None
    ) -> AsyncGenerator[TurnEvent, None]:
        """Runs one turn as :meth:`send` does and yields what happens, the reply last, when the turn is written.

        The turn goes on only as fast as its events are taken. Leaving before the reply cancels it: nothing is written,
        unless its append was under way. A model without ``stream`` yields each of its texts in one piece.
        """
        events = _Events()

        async def run() -> None:
            try:
                await events.put(await self._run(message, model, request_id, events.put, streams=True))
            except Exception as error:  # noqa: BLE001 - raised again for whoever takes the events
                await events.put(_Failed(error))

        # A task of its own: the turn keeps its context, whoever takes the events in whichever context.
        task = asyncio.create_task(run())
        try:
            while True:
                event = await events.take()
                if isinstance(event, _Failed):
                    raise event.error
                yield event
                if isinstance(event, Reply):
                    return
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def consolidate(self, function: Consolidate | None = None, *, request_id: str | None = None) -> Slot:
        """Makes the session's memory anew, of its records and its memory so far, and returns it.

        ``function`` is the session's own where not given; where it makes None, the memory stays as it is. When another
        consolidation wrote meanwhile, this one is refused (Aborted, STALE_VERSION) and the other's memory stands.
        """
        chosen = function or self._runtime.consolidate
        if chosen is None or not callable(chosen):
            raise refused("function", "must be given, here or in a layer of the session's runtime")
        with Steps.begin(request_id) as steps:
            before = await self._client.sessions.get_memory(self._id)
            records = [record async for record in self._client.sessions.iter_records(self._id)]
            memory = await call(chosen, records, before.content)
            if memory is None:
                return before
            return await self._client.sessions.put_memory(
                self._id,
                of_kind(str, memory, "function"),
                expected_version=before.version,
                request_id=steps.id_of("memory"),
            )

    async def _run(
        self,
        message: str | Record,
        model: Model | None,
        request_id: str | None,
        tell: Callable[[TurnEvent], Awaitable[None]],
        *,
        streams: bool,
    ) -> Reply:
        said = _message(message)
        chosen = model or self._runtime.llm
        if chosen is None or not callable(chosen):
            raise refused("model", "must be given, here or as llm in a layer of the session's runtime")
        with Steps.begin(request_id) as steps:
            turn = Turn(
                self._client, self._recorder, self._id, self._runtime, chosen, said, steps, tell, streams=streams
            )
            async with self._lines.turn(self._id):
                return await turn.run()


def _message(message: str | Record) -> Record:
    """Checks a message before a model is asked, since no server takes it afterwards otherwise."""
    record = message if isinstance(message, Record) else Record.user(of_kind(str, message, "message"))
    if record.role is not Role.USER:
        raise refused("message.role", "must be that of a user")
    if "\0" in text(record.content, "message"):
        raise refused("message", "must have no NUL character")
    return record


async def _nobody(_: TurnEvent) -> None:
    """Tells nobody."""


@dataclass(frozen=True)
class _Failed:
    """How a turn failed, on its way to whoever takes its events."""

    error: Exception


class _Events:
    """Hands events over one by one: whoever puts one goes on when the next is asked for."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[TurnEvent | _Failed] = asyncio.Queue(1)
        self._taken = False

    async def put(self, event: TurnEvent | _Failed) -> None:
        await self._queue.put(event)
        await self._queue.join()

    async def take(self) -> TurnEvent | _Failed:
        if self._taken:
            self._queue.task_done()
        event = await self._queue.get()
        self._taken = True
        return event
