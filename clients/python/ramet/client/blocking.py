"""The blocking client: the asyncio client, run on one event loop in the background."""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc

from ramet.client.blocking_transactions import BlockingTransaction, run_blocking
from ramet.client.client import DEFAULT_SPACE, DEFAULT_TIMEOUT_S, Client, connect
from ramet.client.loop_thread import LoopThread, blocking, iterating
from ramet.client.reruns import Reruns
from ramet.client.sessions import SessionStorageClient as _Sessions
from ramet.client.telemetry import TelemetryClient as _Telemetry
from ramet.client.trees import SessionTreeClient as _Tree

__all__ = [
    "BlockingClient",
    "BlockingPart",
    "BlockingSessionStorage",
    "BlockingSessionTree",
    "BlockingTelemetry",
    "connect_blocking",
]

_T = TypeVar("_T")


def connect_blocking(
    address: str | None = None,
    *,
    session: str | None = None,
    tree: str | None = None,
    telemetry: str | None = None,
    space: str = DEFAULT_SPACE,
    timeout: float = DEFAULT_TIMEOUT_S,
    credentials: grpc.ChannelCredentials | None = None,
) -> "BlockingClient":
    """Makes a blocking client; the arguments are those of :func:`connect`.

    ``with ramet.connect_blocking("127.0.0.1:50051") as client: ...``. It may be used from any thread. Make it after a
    fork of the process, not before.
    """
    client = connect(
        address,
        session=session,
        tree=tree,
        telemetry=telemetry,
        space=space,
        timeout=timeout,
        credentials=credentials,
    )
    return BlockingClient(client, _Lease())


class BlockingPart:
    """What stands before one part of the asyncio client."""

    def __init__(self, loop_thread: LoopThread, find_core: Callable[[], Any]) -> None:
        self._loop_thread = loop_thread
        self._find_core = find_core

    @property
    def _core(self) -> Any:
        return self._find_core()


class BlockingSessionStorage(BlockingPart):
    """The content of sessions, blocking: see :class:`SessionStorageClient`."""

    get_session = blocking(_Sessions.get_session)
    batch_get_sessions = blocking(_Sessions.batch_get_sessions)
    list_sessions = blocking(_Sessions.list_sessions)
    iter_sessions = iterating(_Sessions.iter_sessions)
    put_session = blocking(_Sessions.put_session)
    archive_session = blocking(_Sessions.archive_session)
    restore_session = blocking(_Sessions.restore_session)
    delete_session = blocking(_Sessions.delete_session)
    append_records = blocking(_Sessions.append_records)
    list_records = blocking(_Sessions.list_records)
    iter_records = iterating(_Sessions.iter_records)
    trim_records = blocking(_Sessions.trim_records)
    truncate_records = blocking(_Sessions.truncate_records)
    erase_record = blocking(_Sessions.erase_record)
    watch_records = iterating(_Sessions.watch_records, live=True)
    get_system_prompt = blocking(_Sessions.get_system_prompt)
    put_system_prompt = blocking(_Sessions.put_system_prompt)
    get_insight = blocking(_Sessions.get_insight)
    put_insight = blocking(_Sessions.put_insight)
    clear_insight = blocking(_Sessions.clear_insight)
    get_memory = blocking(_Sessions.get_memory)
    put_memory = blocking(_Sessions.put_memory)
    batch_get_slots = iterating(_Sessions.batch_get_slots)
    get_context = blocking(_Sessions.get_context)
    fork_session = blocking(_Sessions.fork_session)
    diff_sessions = blocking(_Sessions.diff_sessions)
    get_server_info = blocking(_Sessions.get_server_info)

    def transaction(self, *, request_id: str | None = None) -> BlockingTransaction:
        """Makes a transaction: ``with client.sessions.transaction() as tx: ...``; see :class:`Transaction`."""
        return BlockingTransaction(self._loop_thread, lambda: self._core.transaction(request_id=request_id))

    def run_in_transaction(
        self, fn: Callable[[BlockingTransaction], _T], *, attempts: int = 10, request_id: str | None = None
    ) -> _T:
        """Runs a function in a transaction and commits it; see :meth:`SessionStorageClient.run_in_transaction`."""
        return run_blocking(lambda name: self.transaction(request_id=name), fn, Reruns(attempts, request_id))


class BlockingSessionTree(BlockingPart):
    """The forest, blocking: see :class:`SessionTreeClient`."""

    create_session = blocking(_Tree.create_session)
    get_node = blocking(_Tree.get_node)
    list_nodes = blocking(_Tree.list_nodes)
    iter_nodes = iterating(_Tree.iter_nodes)
    list_roots = blocking(_Tree.list_roots)
    iter_roots = iterating(_Tree.iter_roots)
    list_children = blocking(_Tree.list_children)
    iter_children = iterating(_Tree.iter_children)
    get_ancestors = blocking(_Tree.get_ancestors)
    iter_ancestors = iterating(_Tree.iter_ancestors)
    get_siblings = blocking(_Tree.get_siblings)
    iter_siblings = iterating(_Tree.iter_siblings)
    list_descendants = blocking(_Tree.list_descendants)
    iter_descendants = iterating(_Tree.iter_descendants)
    get_tree = blocking(_Tree.get_tree)
    iter_tree = iterating(_Tree.iter_tree)
    watch_tree = iterating(_Tree.watch_tree, live=True)
    update_node = blocking(_Tree.update_node)
    move_node = blocking(_Tree.move_node)
    delete_node = blocking(_Tree.delete_node)
    add_ref = blocking(_Tree.add_ref)
    remove_ref = blocking(_Tree.remove_ref)
    get_config = blocking(_Tree.get_config)
    put_config = blocking(_Tree.put_config)
    get_server_info = blocking(_Tree.get_server_info)


class BlockingTelemetry(BlockingPart):
    """What agents did, blocking: see :class:`TelemetryClient`."""

    get_diagnosis = blocking(_Telemetry.get_diagnosis)
    list_diagnoses = blocking(_Telemetry.list_diagnoses)
    iter_diagnoses = iterating(_Telemetry.iter_diagnoses)
    get_decision_chain = blocking(_Telemetry.get_decision_chain)
    iter_steps = iterating(_Telemetry.iter_steps)
    list_tool_invocations = blocking(_Telemetry.list_tool_invocations)
    iter_tool_invocations = iterating(_Telemetry.iter_tool_invocations)
    put_feedback = blocking(_Telemetry.put_feedback)
    put_self_evaluation = blocking(_Telemetry.put_self_evaluation)
    query_metrics = blocking(_Telemetry.query_metrics)
    tail = iterating(_Telemetry.tail, live=True)
    get_server_info = blocking(_Telemetry.get_server_info)


class BlockingClient:
    """A blocking client of Ramet, made by :func:`connect_blocking`. It may be used from any thread."""

    def __init__(self, client: Client, lease: "_Lease") -> None:
        self._client = client
        self._lease = lease
        self.loop_thread = lease.loop_thread
        """Where the asyncio client runs; for parts that are built upon it."""
        self.sessions = BlockingSessionStorage(lease.loop_thread, lambda: client.sessions)
        """The content of sessions: the contract SessionStorage."""
        self.tree = BlockingSessionTree(lease.loop_thread, lambda: client.tree)
        """The forest: the contract SessionTree."""
        self.telemetry = BlockingTelemetry(lease.loop_thread, lambda: client.telemetry)
        """What agents did: the contract Telemetry, its answers."""

    @property
    def asyncio_client(self) -> Client:
        """The client behind this one; for parts that are built upon it."""
        return self._client

    @property
    def space(self) -> str:
        """The space that the calls are about."""
        return self._client.space

    def with_options(self, *, space: str | None = None, timeout: float | None = None) -> "BlockingClient":
        """Returns a client with another space or deadline over the same connections; closing one closes both."""
        return BlockingClient(self._client.with_options(space=space, timeout=timeout), self._lease)

    def close(self) -> None:
        """Closes the connections; calls under way in other threads raise Cancelled."""
        self._lease.end(self._client)

    def __enter__(self) -> Self:
        """Returns the client itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the connections."""
        self.close()


class _Lease:
    """One use of the shared loop, given back once."""

    def __init__(self) -> None:
        self.loop_thread = LoopThread.acquire()
        self._lock = threading.Lock()
        self._ended = False

    def end(self, client: Client) -> None:
        with self._lock:
            if self._ended:
                return
            self._ended = True
        self.loop_thread.run(client.close())
        self.loop_thread.release()
