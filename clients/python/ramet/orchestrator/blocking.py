"""The orchestrator, blocking."""

from ramet.client import BlockingClient
from ramet.client.blocking import BlockingPart
from ramet.client.loop_thread import blocking, iterating
from ramet.orchestrator.orchestrator import Orchestrator

__all__ = ["BlockingOrchestrator"]


class BlockingOrchestrator(BlockingPart):
    """An :class:`Orchestrator` over a blocking client."""

    def __init__(self, client: BlockingClient) -> None:
        core = Orchestrator(client.asyncio_client)
        super().__init__(client.loop_thread, lambda: core)

    create_root = blocking(Orchestrator.create_root)
    create_session = blocking(Orchestrator.create_session)
    fork = blocking(Orchestrator.fork)
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
