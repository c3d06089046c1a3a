"""The orchestrator: sessions on both lines, forks, turns, digests and reflection, and the forest as nested values."""

from ramet.orchestrator.anthropic_messages import AnthropicMessages
from ramet.orchestrator.blocking import BlockingOrchestrator, BlockingSessionHandle
from ramet.orchestrator.config import (
    Budget,
    Compress,
    Consolidate,
    Profile,
    PromptFunction,
    PromptMode,
    Runtime,
    SessionDefaults,
)
from ramet.orchestrator.creation import ContextFunction, ForkContext, NewSession
from ramet.orchestrator.digests import Digest
from ramet.orchestrator.forest import Forest, TreeNode
from ramet.orchestrator.handle import SessionHandle
from ramet.orchestrator.merging import ForkDiff, ForkSide, Merged, RefOutcome, Summarize
from ramet.orchestrator.models import Model, ModelDelta, ModelReply, StreamingModel, Tool
from ramet.orchestrator.openai_chat import OpenAIChat
from ramet.orchestrator.orchestrator import Orchestrator
from ramet.orchestrator.reflection import Insights, Reflect, Reflection
from ramet.orchestrator.registry import Guard, Split
from ramet.orchestrator.replies import Reply, TextDelta, ThoughtDelta, ToolAnswered, ToolCalled, TurnEvent

__all__ = [
    "AnthropicMessages",
    "BlockingOrchestrator",
    "BlockingSessionHandle",
    "Budget",
    "Compress",
    "Consolidate",
    "ContextFunction",
    "Digest",
    "Forest",
    "ForkContext",
    "ForkDiff",
    "ForkSide",
    "Guard",
    "Insights",
    "Merged",
    "Model",
    "ModelDelta",
    "ModelReply",
    "NewSession",
    "OpenAIChat",
    "Orchestrator",
    "Profile",
    "PromptFunction",
    "PromptMode",
    "RefOutcome",
    "Reflect",
    "Reflection",
    "Reply",
    "Runtime",
    "SessionDefaults",
    "SessionHandle",
    "Split",
    "StreamingModel",
    "Summarize",
    "TextDelta",
    "ThoughtDelta",
    "Tool",
    "ToolAnswered",
    "ToolCalled",
    "TreeNode",
    "TurnEvent",
]
