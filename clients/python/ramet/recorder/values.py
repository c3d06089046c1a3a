"""What a recorder is told and tells: its limits, what became of its events, usage, retrievals."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from ramet.telemetry.v1 import telemetry_pb2 as pb

__all__ = ["Layer", "Limits", "Report", "Status", "Usage"]

_MIB = 1024 * 1024


class Status(Enum):
    """How a diagnosis or a step ended."""

    SUCCESS = pb.RUN_STATUS_SUCCESS
    FAILED = pb.RUN_STATUS_FAILED
    CANCELLED = pb.RUN_STATUS_CANCELLED


class Layer(Enum):
    """Which layers of a knowledge base a lookup hit."""

    L0 = pb.RETRIEVAL_LAYER_L0
    L1 = pb.RETRIEVAL_LAYER_L1
    L0_L1 = pb.RETRIEVAL_LAYER_L0_L1


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and cost of one model call; None is unknown, never 0."""

    input_tokens: int | None = None
    """All input tokens, the cached ones among them."""
    cached_tokens: int | None = None
    """Input tokens that came from a cache."""
    output_tokens: int | None = None
    total_tokens: int | None = None
    """None: the server adds input and output where both are known."""
    cost_micros: int | None = None
    """In millionths of a US dollar."""


@dataclass(frozen=True)
class Limits:
    """How much a recorder holds, and how long it waits."""

    queue_bytes: int = 16 * _MIB
    """Events in memory, in bytes, what is under way among them; what comes beyond is dropped and counted."""
    event_bytes: int = _MIB
    """Largest event, in bytes."""
    spool_bytes: int = 256 * _MIB
    """Most that the spool directory holds for this space, in bytes."""
    batch_events: int = 500
    """Events of one batch; the server's word counts where it is less."""
    batch_bytes: int = _MIB
    """Bytes of one batch; the server's word counts where it is less."""
    linger_s: float = 0.05
    """How long an event waits for others to share its batch, in seconds."""
    connect_s: float = 5.0
    """How long a server may take to welcome, in seconds."""
    ack_s: float = 20.0
    """How long a server may be silent while events are under way, in seconds; then the connection is given up."""
    first_backoff_s: float = 0.1
    """Pause after the first failed connection, in seconds; it doubles, and each is shortened by chance to half."""
    longest_backoff_s: float = 30.0
    """Longest pause between connections, in seconds."""


@dataclass(frozen=True)
class Report:
    """What became of the events that this process recorded, and of those that it took over from others."""

    acked: int = 0
    """Committed by the server."""
    pending: int = 0
    """Recorded, and neither committed nor given up: in memory or in the spool."""
    spooled: int = 0
    """Those of the pending that are on disk, where the next start finds them."""
    rejected: int = 0
    """Refused by the server for what they are."""
    dropped: int = 0
    """Given up by the recorder."""
    dropped_by_kind: Mapping[str, int] = field(default_factory=dict)
    """Those by the kind of event, as ``step_completed``."""
    ever_spooled: int = 0
    """How many were on disk at some time."""
