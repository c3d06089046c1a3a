"""The orchestrator: sessions on both lines, forks, digests, and the forest as nested values."""

from ramet.orchestrator.blocking import BlockingOrchestrator
from ramet.orchestrator.creation import ContextFunction, ForkContext, NewSession
from ramet.orchestrator.digests import Digest
from ramet.orchestrator.forest import Forest, TreeNode
from ramet.orchestrator.merging import ForkDiff, ForkSide, Merged, RefOutcome, Summarize
from ramet.orchestrator.orchestrator import Orchestrator

__all__ = [
    "BlockingOrchestrator",
    "ContextFunction",
    "Digest",
    "Forest",
    "ForkContext",
    "ForkDiff",
    "ForkSide",
    "Merged",
    "NewSession",
    "Orchestrator",
    "RefOutcome",
    "Summarize",
    "TreeNode",
]
