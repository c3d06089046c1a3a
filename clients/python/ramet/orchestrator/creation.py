"""How a session comes to be on both lines: its node first, unseen, then its content, which makes both visible."""

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

from ramet.client import (
    AlreadyExists,
    Client,
    Config,
    FailedPrecondition,
    Forked,
    History,
    InvalidArgument,
    Node,
    NotFound,
    OutOfRange,
    RametError,
    Record,
    Session,
)
from ramet.client.arguments import refused
from ramet.orchestrator.calling import call
from ramet.orchestrator.config import Layers
from ramet.orchestrator.steps import Steps

__all__ = ["ContextFunction", "ForkContext", "ForkOptions", "NewSession", "SessionOptions", "create", "fork"]

ContextFunction: TypeAlias = Callable[[Sequence[Record]], Iterable[Record] | Awaitable[Iterable[Record]]]
"""Makes a fork's history out of its source's records; synchronous (run on a thread) or asynchronous."""

ForkContext: TypeAlias = Literal["none", "inherit"] | History | ContextFunction
"""What a fork knows of its source: nothing, all of it, a part by :class:`History`, or what a function makes of it."""


@dataclass(frozen=True)
class SessionOptions:
    """What a new session is given."""

    session_id: str | None
    """None: made from the operation's id."""
    label: str
    """On both lines."""
    tags: tuple[str, ...]
    """Of the session."""
    metadata_json: str | None
    """Of the session."""
    system_prompt: str | None
    """None: not set, or inherited by a fork."""
    skills: tuple[str, ...] | None
    """None: not set, or inherited by a fork; empty: no skills."""

    @property
    def config(self) -> Config:
        """What of it is frozen."""
        return Config(self.system_prompt, self.skills)


@dataclass(frozen=True)
class ForkOptions:
    """What a fork is given."""

    session: SessionOptions
    """What any new session is given."""
    context: ForkContext
    """What it knows of its source."""
    opening_prompt: str | None
    """Its first own words, by the assistant."""
    topology_parent: str | None
    """Where it stands; None: below its source."""


@dataclass(frozen=True)
class NewSession:
    """A session that was made on both lines."""

    session: Session
    """Its metadata."""
    node: Node
    """Its place in the forest."""
    inherited_through_seq: int = 0
    """The last seq that a fork inherited; 0 when none was."""
    incomplete_records: int = 0
    """Records of incomplete tool-call groups that a fork left out."""

    @property
    def id(self) -> str:
        """The id of both."""
        return self.session.id


async def create(
    client: Client, steps: Steps, parent_id: str | None, options: SessionOptions, layers: Layers
) -> NewSession:
    """Creates a session, as a root without ``parent_id``."""
    session_id = options.session_id or steps.session_id
    config = await layers.frozen(None, options.config)
    node = await _unseen_node(client, steps, session_id, config, parent_id=parent_id, label=options.label)
    async with _taken_back_if_refused(client, session_id):
        session = await client.sessions.put_session(
            session_id,
            label=options.label,
            tags=options.tags,
            metadata_json=options.metadata_json,
            system_prompt=config.system_prompt,
            expected_version=0,
            request_id=steps.id_of("session"),
        )
    return NewSession(session, node)


async def fork(client: Client, steps: Steps, source_id: str, options: ForkOptions, layers: Layers) -> NewSession:
    """Forks a session: its config is the source's where the profile and the options are silent."""
    own = options.session
    session_id = own.session_id or steps.session_id
    config = await layers.frozen(await client.tree.get_config(source_id), own.config)
    # Before the node, so that a function that fails leaves nothing behind.
    history = await _history(client, source_id, options.context)
    node = await _unseen_node(
        client,
        steps,
        session_id,
        config,
        parent_id=source_id if options.topology_parent is None else options.topology_parent,
        source_id=source_id,
        label=own.label,
    )
    async with _taken_back_if_refused(client, session_id):
        forked = await _fork_once(
            client,
            session_id,
            callable(options.context),
            client.sessions.fork_session(
                source_id,
                session_id,
                history=history,
                label=own.label,
                tags=own.tags,
                metadata_json=own.metadata_json,
                opening_prompt=options.opening_prompt,
                system_prompt=config.system_prompt,
                request_id=steps.id_of("session"),
            ),
        )
    return NewSession(forked.session, node, forked.inherited_through_seq, forked.incomplete_records)


async def _unseen_node(
    client: Client,
    steps: Steps,
    session_id: str,
    config: Config,
    *,
    parent_id: str | None,
    source_id: str | None = None,
    label: str,
) -> Node:
    make = partial(
        client.tree.create_session,
        session_id,
        parent_id=parent_id,
        label=label,
        source_session_id=source_id,
        config=None if config.system_prompt is None and config.skills is None else config,
        awaits_content=True,
    )
    try:
        return await make(request_id=steps.id_of("tree"))
    except NotFound as error:
        if error.field == "parent_id" or not steps.repeatable:
            raise
        # An earlier attempt made the node and died; it waited so long for its content that it was swept. Where the
        # session had come, and was deleted since, the next step is refused: what is deleted does not come back.
        return await make(request_id=steps.id_of("tree-again"))


@contextlib.asynccontextmanager
async def _taken_back_if_refused(client: Client, session_id: str) -> AsyncGenerator[None, None]:
    """Frees the id again where the content is refused for good, so that a corrected attempt may use it."""
    try:
        yield
    except (InvalidArgument, NotFound, OutOfRange, FailedPrecondition, AlreadyExists):
        # Only a node that nobody sees is taken back; where that fails too, the sweep does it later.
        with contextlib.suppress(RametError):
            await client.tree.delete_node(session_id, only_awaiting=True)
        raise


async def _fork_once(client: Client, session_id: str, from_function: bool, call: Coroutine[Any, Any, Forked]) -> Forked:
    try:
        return await call
    except AlreadyExists as error:
        if error.reason == "REQUEST_ID_REUSED" and from_function:
            # This very operation came this far before, and its function made other records then: those stand.
            return Forked(await client.sessions.get_session(session_id), 0, 0)
        raise


async def _history(client: Client, source_id: str, context: ForkContext) -> History:
    if isinstance(context, History):
        return context
    if context == "none":
        return History.none()
    if context == "inherit":
        return History.everything()
    if not callable(context):
        raise refused("context", f"must be 'none', 'inherit', a History or a function, not {context!r}")
    records = [record async for record in client.sessions.iter_records(source_id)]
    made = await call(context, records)
    if not isinstance(made, Iterable):
        raise refused("context", f"its function must return records, not {type(made).__name__}")
    return History.of(made)
