"""The orchestrator: what takes both lines, the content of sessions and the forest they form."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import Any

from ramet.client import (
    Aborted,
    AlreadyExists,
    Client,
    DeletedNodes,
    DeletePolicy,
    NotFound,
    RametError,
    Record,
    Role,
    Session,
    SessionStatus,
    Slot,
)
from ramet.client.arguments import refused, text, texts
from ramet.orchestrator import creation, digests, merging
from ramet.orchestrator.config import Profile, Runtime, SessionDefaults
from ramet.orchestrator.creation import ForkContext, ForkOptions, NewSession, SessionOptions
from ramet.orchestrator.digests import Digest
from ramet.orchestrator.forest import Forest, read_forest
from ramet.orchestrator.handle import SessionHandle
from ramet.orchestrator.lines import Lines
from ramet.orchestrator.merging import ForkDiff, ForkSide, Merged, Summarize
from ramet.orchestrator.reflection import Reflect, Reflection, reflect
from ramet.orchestrator.registry import Guard, Registry, Split
from ramet.orchestrator.steps import Steps
from ramet.recorder import Recorder

__all__ = ["Orchestrator"]

_PARALLEL_DELETES = 16
_RENAME_ATTEMPTS = 5


class Orchestrator:
    """Creates, forks, reads and deletes sessions that stand in the forest.

    Every method raises a :class:`RametError`. An operation of several calls takes one ``request_id``, and an error of
    it bears that id: repeating the whole with the same id and arguments, in this process or another, goes on where it
    stopped and does nothing twice.
    A create or fork that dies half-way is never seen, and is swept after a while if nobody goes on with it.
    """

    def __init__(
        self,
        client: Client,
        *,
        defaults: SessionDefaults | None = None,
        profiles: Mapping[str, Profile] | None = None,
        guard: Guard | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        """Takes the client, and what holds for the sessions that it makes and runs.

        ``guard`` may refuse forks. With a ``recorder`` a turn outside every diagnosis is a diagnosis of its own.
        """
        self._client = client
        self._registry = Registry(defaults, profiles, guard)
        self._recorder = recorder
        self._lines = Lines()

    def register_profile(self, name: str, profile: Profile) -> None:
        """Registers a kind of session under a name; it replaces one that has the name."""
        self._registry.register(name, profile)

    async def create_root(
        self,
        *,
        session_id: str | None = None,
        label: str = "",
        tags: Iterable[str] = (),
        metadata_json: str | None = None,
        system_prompt: str | None = None,
        skills: Iterable[str] | None = None,
        profile: str | None = None,
        profile_vars: Mapping[str, Any] | None = None,
        runtime: Runtime | None = None,
        request_id: str | None = None,
    ) -> NewSession:
        """Creates a session that stands as a root.

        ``system_prompt`` is both what its sends begin with and, with ``skills``, the frozen config of its forks. Where
        they are absent the profile's count, then the defaults'; :meth:`fork` tells how they are joined, and what a
        ``runtime`` is.
        """
        options = _options(session_id, label, tags, metadata_json, system_prompt, skills)
        layers = self._registry.layers(profile, profile_vars)
        with Steps.begin(request_id) as steps:
            made = await creation.create(self._client, steps, None, options, layers)
        self._registry.remember(made.id, profile, runtime)
        return made

    async def create_session(
        self,
        parent_id: str,
        *,
        session_id: str | None = None,
        label: str = "",
        tags: Iterable[str] = (),
        metadata_json: str | None = None,
        system_prompt: str | None = None,
        skills: Iterable[str] | None = None,
        profile: str | None = None,
        profile_vars: Mapping[str, Any] | None = None,
        runtime: Runtime | None = None,
        request_id: str | None = None,
    ) -> NewSession:
        """Creates a session below another; unlike a fork it takes nothing from it. See :meth:`create_root`."""
        if not isinstance(parent_id, str):
            # None would make a root, which nobody asked for who lost a parent's id.
            raise refused("parent_id", "must be the id of a session; create_root makes a root")
        options = _options(session_id, label, tags, metadata_json, system_prompt, skills)
        layers = self._registry.layers(profile, profile_vars)
        with Steps.begin(request_id) as steps:
            made = await creation.create(self._client, steps, parent_id, options, layers)
        self._registry.remember(made.id, profile, runtime)
        return made

    async def fork(
        self,
        source_id: str,
        *,
        context: ForkContext = "none",
        opening_prompt: str | None = None,
        topology_parent: str | None = None,
        session_id: str | None = None,
        label: str = "",
        tags: Iterable[str] = (),
        metadata_json: str | None = None,
        system_prompt: str | None = None,
        skills: Iterable[str] | None = None,
        profile: str | None = None,
        profile_vars: Mapping[str, Any] | None = None,
        runtime: Runtime | None = None,
        request_id: str | None = None,
    ) -> NewSession:
        """Forks a session; the source is only read, and may be archived.

        ``context`` is what the fork knows: ``"none"``, ``"inherit"`` (all of the source's history, shared and not
        copied), a :class:`History`, or a function that makes records of the source's records. ``opening_prompt``
        becomes an assistant record. It stands below its source, or below ``topology_parent``.

        ``system_prompt`` and ``skills`` come of layers, the later wins, and what is absent overrides nothing: the
        defaults, the source's frozen ones, the ``profile``'s, those given here. A profile's prompt and the one given
        here are joined as its mode says; empty skills mean none. Where no layer gives a system prompt, the fork takes
        the one that the source's sends begin with now. ``runtime`` is what runs it, over the profile's: this
        orchestrator remembers it for :meth:`session` until it deletes the session; another one has to be told.

        An unregistered profile, and a fork that the guard refuses, are refused before anything is made.
        """
        base = _options(session_id, label, tags, metadata_json, system_prompt, skills)
        options = ForkOptions(base, context, opening_prompt, topology_parent)
        layers = self._registry.layers(profile, profile_vars)
        parent = source_id if topology_parent is None else topology_parent
        await self._registry.permit(Split(source_id, parent, session_id, label, profile, layers.variables))
        with Steps.begin(request_id) as steps:
            made = await creation.fork(self._client, steps, source_id, options, layers)
        self._registry.remember(made.id, profile, runtime)
        return made

    def session(self, session_id: str, *, profile: str | None = None, runtime: Runtime | None = None) -> SessionHandle:
        """Returns a handle to run turns of a session and to consolidate it; nothing is read yet.

        What runs it comes of layers: the defaults, what this orchestrator made the session with, the ``profile``, the
        ``runtime``.
        """
        session_id = text(session_id, "session_id")
        chosen = self._registry.runtime(session_id, profile, runtime)
        return SessionHandle(self._client, self._lines, self._recorder, session_id, chosen)

    async def reflect(
        self,
        function: Reflect,
        *,
        label_prefix: str = "",
        status: SessionStatus | None = None,
        below: str | None = None,
    ) -> Reflection:
        """Hands the digests of :meth:`list_digests` to a function and delivers each insight that it derives.

        ``function`` returns a mapping of session to insight, or pairs of them, or yields such pairs asynchronously:
        then each is delivered when it comes. A target that fails is reported and stops nobody else. What the function
        raises is raised; what it had derived before that is delivered.
        """
        if not callable(function):
            raise refused("function", "must be callable")
        found = await self.list_digests(label_prefix=label_prefix, status=status, below=below)
        return await reflect(self._client, found, function)

    def iter_digests(
        self, *, label_prefix: str = "", status: SessionStatus | None = None, below: str | None = None
    ) -> AsyncGenerator[Digest, None]:
        """Yields the digests of the forest, or of one node and everything below it, in the order of the forest.

        Takes two calls per 1,000 nodes. A node without a session has no digest.
        """
        return digests.iter_digests(self._client, label_prefix=label_prefix, status=status, below=below)

    async def list_digests(
        self, *, label_prefix: str = "", status: SessionStatus | None = None, below: str | None = None
    ) -> list[Digest]:
        """Lists what :meth:`iter_digests` yields."""
        return [digest async for digest in self.iter_digests(label_prefix=label_prefix, status=status, below=below)]

    async def read_tree(self, below: str | None = None) -> Forest:
        """Reads the forest, or one node and everything below it, and nests it."""
        return await read_forest(self._client.tree, below)

    async def put_insight(self, session_id: str, content: str, *, request_id: str | None = None) -> Slot:
        """Delivers an insight, which the session's next turn reads once; it replaces one that was not consumed."""
        return await self._client.sessions.put_insight(session_id, content, request_id=request_id)

    async def clear_insight(self, session_id: str, *, request_id: str | None = None) -> Slot:
        """Takes an insight back that no turn has consumed yet."""
        return await self._client.sessions.clear_insight(session_id, request_id=request_id)

    async def put_memory(self, session_id: str, content: str | None, *, request_id: str | None = None) -> Slot:
        """Writes the session as others see it; None unsets it."""
        return await self._client.sessions.put_memory(session_id, content, request_id=request_id)

    async def rename(self, session_id: str, label: str, *, request_id: str | None = None) -> Session:
        """Writes a label on both lines; an archived session, or one without a node, is refused before any change."""
        with Steps.begin(request_id) as steps:
            await self._client.tree.get_node(session_id)
            session = await self._relabel(session_id, label, steps)
            while True:
                # The session's line decides between renames at once: who labels the node last finds its label there.
                await self._client.tree.update_node(
                    session_id, label=session.label, request_id=steps.id_of(f"tree:{session.version}")
                )
                current = await self._client.sessions.get_session(session_id)
                if current.label == session.label:
                    return current
                session = current

    async def archive(self, session_id: str, *, request_id: str | None = None) -> Session:
        """Archives a session: it stays readable, forkable, restorable and deletable; its place stays too."""
        return await self._client.sessions.archive_session(session_id, request_id=request_id)

    async def restore(self, session_id: str, *, request_id: str | None = None) -> Session:
        """Makes an archived session writable again."""
        return await self._client.sessions.restore_session(session_id, request_id=request_id)

    async def delete(
        self, session_id: str, policy: DeletePolicy = DeletePolicy.REFUSE, *, request_id: str | None = None
    ) -> DeletedNodes:
        """Deletes a node with its session; ``policy`` says what becomes of everything below it.

        The nodes go first, in one transaction that also notes that their sessions must go. Those are then deleted from
        here; whatever does not come to that is finished by the server's sweep.
        """
        with Steps.begin(request_id) as steps:
            deleted = await self._client.tree.delete_node(
                session_id, policy, delete_sessions=True, request_id=steps.id_of("tree")
            )
            self._registry.forget(deleted.node_ids)
            await self._delete_sessions(deleted.node_ids, steps)
            return deleted

    async def diff(self, left_id: str, right_id: str) -> ForkDiff:
        """Compares two sessions: how far both show the very same records, and where each goes on alone."""
        return await merging.compare(self._client, left_id, right_id)

    def iter_own_records(self, side: ForkSide) -> AsyncGenerator[Record, None]:
        """Yields what one side of a diff shows after the common beginning, page by page."""
        return merging.iter_own(self._client, side)

    async def merge(
        self,
        fork_id: str,
        *,
        into: str,
        summarize: Summarize,
        role: Role = Role.ASSISTANT,
        request_id: str | None = None,
    ) -> Merged:
        """Brings what a fork found back into another session, mostly its source: one summary record at its end.

        ``summarize`` is the summary, or a function that makes it of the fork's records after the common beginning
        and after what an earlier merge covers; where there are none, nothing changes and the reply says so. The
        record tells under ``ramet_merge`` in its metadata_json what it covers, as :mod:`ramet.orchestrator.merging`
        lists. The target refers to the fork where the forest allows it. An archived target is refused first.
        Repeated with the same ``request_id``, it neither asks ``summarize`` again nor appends again.
        """
        with Steps.begin(request_id) as steps:
            return await merging.merge(self._client, steps, fork_id, into, summarize, role)

    async def _relabel(self, session_id: str, label: str, steps: Steps) -> Session:
        """Labels the session's own line, by its version so that none is created where none is."""
        for attempt in range(1, _RENAME_ATTEMPTS + 1):
            session = await self._client.sessions.get_session(session_id)
            try:
                return await self._client.sessions.put_session(
                    session_id, label=label, expected_version=session.version, request_id=steps.id_of("session")
                )
            except AlreadyExists:
                # This operation wrote its label before, on another version; what is there now came after it.
                return session
            except Aborted as error:
                if error.reason != "STALE_VERSION" or attempt == _RENAME_ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def _delete_sessions(self, session_ids: Iterable[str], steps: Steps) -> None:
        places = asyncio.Semaphore(_PARALLEL_DELETES)

        async def delete(session_id: str) -> None:
            async with places:
                # A repeated delete must not hit a session that was made under the same id after the first.
                if steps.repeatable and await self._stands(session_id):
                    return
                with contextlib.suppress(NotFound):
                    await self._client.sessions.delete_session(
                        session_id, request_id=steps.id_of(f"session:{session_id}")
                    )

        results = await asyncio.gather(*map(delete, session_ids), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _stands(self, node_id: str) -> bool:
        try:
            await self._client.tree.get_node(node_id)
        except NotFound:
            return False
        except RametError:
            return True
        return True


def _options(
    session_id: str | None,
    label: str,
    tags: Iterable[str],
    metadata_json: str | None,
    system_prompt: str | None,
    skills: Iterable[str] | None,
) -> SessionOptions:
    return SessionOptions(
        session_id=session_id,
        label=label,
        tags=texts(tags, "tags"),
        metadata_json=metadata_json,
        system_prompt=system_prompt,
        skills=None if skills is None else texts(skills, "skills"),
    )
