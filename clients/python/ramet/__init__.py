"""The Python client of Ramet: durable conversations of agents, and the forest that they form.

::

    async with ramet.connect("127.0.0.1:50051") as client:
        orchestrator = ramet.Orchestrator(client)
        root = await orchestrator.create_root(label="Main", system_prompt="Answer briefly.")
        await client.sessions.append_records(root.id, [ramet.Record.user("Hello")], turn_delta=1)
        idea = await orchestrator.fork(root.id, context="inherit", label="Another idea")

``connect_blocking`` and ``BlockingOrchestrator`` have the same methods without ``await``. Everything else that is
public is in ``ramet.client``, ``ramet.orchestrator``, ``ramet.recorder`` (agents tell what they do) and ``ramet.otlp``;
``ramet.session``, ``ramet.tree`` and ``ramet.telemetry`` hold the stubs.
"""

import os

__version__ = "0.1.0"

# Read once, when gRPC is imported. Where it is unset, gRPC for Python takes it for 0 and gRPC's core for 1: half of the
# handlers of forks then run, and crash one forked child in four or so of a process with an open asyncio call.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

from ramet.client import (
    Aborted,
    AlreadyCommitted,
    AlreadyExists,
    BlockingClient,
    BlockingTransaction,
    Cancelled,
    Client,
    Config,
    DeadlineExceeded,
    DeletePolicy,
    FailedPrecondition,
    FieldViolation,
    History,
    Internal,
    InvalidArgument,
    NotFound,
    OutOfRange,
    PermissionDenied,
    RametError,
    Record,
    ResourceExhausted,
    Role,
    SessionFilter,
    SessionOrder,
    SessionStatus,
    SlotName,
    ToolCall,
    Transaction,
    Unauthenticated,
    Unavailable,
    Unimplemented,
    connect,
    connect_blocking,
)
from ramet.orchestrator import BlockingOrchestrator, Digest, Forest, NewSession, Orchestrator, TreeNode

__all__ = [
    "Aborted",
    "AlreadyCommitted",
    "AlreadyExists",
    "BlockingClient",
    "BlockingOrchestrator",
    "BlockingTransaction",
    "Cancelled",
    "Client",
    "Config",
    "DeadlineExceeded",
    "DeletePolicy",
    "Digest",
    "FailedPrecondition",
    "FieldViolation",
    "Forest",
    "History",
    "Internal",
    "InvalidArgument",
    "NewSession",
    "NotFound",
    "Orchestrator",
    "OutOfRange",
    "PermissionDenied",
    "RametError",
    "Record",
    "ResourceExhausted",
    "Role",
    "SessionFilter",
    "SessionOrder",
    "SessionStatus",
    "SlotName",
    "ToolCall",
    "Transaction",
    "TreeNode",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
    "__version__",
    "connect",
    "connect_blocking",
]
