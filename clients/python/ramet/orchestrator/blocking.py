"""The orchestrator, blocking."""

from collections.abc import Mapping

from ramet.client import BlockingClient
from ramet.client.blocking import BlockingPart
from ramet.client.loop_thread import blocking, iterating
from ramet.orchestrator.config import Profile, Runtime, SessionDefaults
from ramet.orchestrator.handle import SessionHandle
from ramet.orchestrator.orchestrator import Orchestrator
from ramet.orchestrator.registry import Guard
from ramet.recorder import Recorder

__all__ = ["BlockingOrchestrator", "BlockingSessionHandle"]


class BlockingSessionHandle(BlockingPart):
    """One session and what runs it, blocking: see :class:`SessionHandle`. The model is asynchronous all the same."""

    @property
    def id(self) -> str:
        """The session."""
        return str(self._core.id)

    @property
    def runtime(self) -> Runtime:
        """What runs it, all layers laid over each other."""
        chosen: Runtime = self._core.runtime
        return chosen

    send = blocking(SessionHandle.send)
    stream = iterating(SessionHandle.stream, live=True)
    consolidate = blocking(SessionHandle.consolidate)


class BlockingOrchestrator(BlockingPart):
    """An :class:`Orchestrator` over a blocking client. It may be used from any thread."""

    def __init__(
        self,
        client: BlockingClient,
        *,
        defaults: SessionDefaults | None = None,
        profiles: Mapping[str, Profile] | None = None,
        guard: Guard | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        """Takes the client, and what :class:`Orchestrator` takes."""
        core = Orchestrator(client.asyncio_client, defaults=defaults, profiles=profiles, guard=guard, recorder=recorder)
        super().__init__(client.loop_thread, lambda: core)

    def register_profile(self, name: str, profile: Profile) -> None:
        """Registers a kind of session under a name; it replaces one that has the name."""
        self._core.register_profile(name, profile)

    def session(
        self, session_id: str, *, profile: str | None = None, runtime: Runtime | None = None
    ) -> BlockingSessionHandle:
        """Returns a handle to run turns of a session and to consolidate it; nothing is read yet."""
        handle = self._core.session(session_id, profile=profile, runtime=runtime)
        return BlockingSessionHandle(self._loop_thread, lambda: handle)

    create_root = blocking(Orchestrator.create_root)
    create_session = blocking(Orchestrator.create_session)
    fork = blocking(Orchestrator.fork)
    reflect = blocking(Orchestrator.reflect)
    iter_digests = iterating(Orchestrator.iter_digests)
    list_digests = blocking(Orchestrator.list_digests)
    read_tree = blocking(Orchestrator.read_tree)
    put_insight = blocking(Orchestrator.put_insight)
    clear_insight = blocking(Orchestrator.clear_insight)
    put_memory = blocking(Orchestrator.put_memory)
    rename = blocking(Orchestrator.rename)
    archive = blocking(Orchestrator.archive)
    restore = blocking(Orchestrator.restore)
    delete = blocking(Orchestrator.delete)
    diff = blocking(Orchestrator.diff)
    iter_own_records = iterating(Orchestrator.iter_own_records)
    merge = blocking(Orchestrator.merge)
