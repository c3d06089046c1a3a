"""A whole diagnosis, read page by page."""

from dataclasses import dataclass

from ramet.client import AgentStep, Client, Diagnosis, ToolInvocation

__all__ = ["Chain", "read_chain"]


@dataclass(frozen=True)
class Chain:
    """A diagnosis as it went."""

    space: str
    diagnosis: Diagnosis
    steps: tuple[AgentStep, ...]
    """By step_index, each with its tool calls."""
    loose_tools: tuple[ToolInvocation, ...]
    """Tool calls of no known step."""


async def read_chain(client: Client, session_id: str) -> Chain:
    """Reads every page of a decision chain."""
    page = first = await client.telemetry.get_decision_chain(session_id, page_size=1000)
    steps = list(page.steps)
    while page.next_page_token is not None:
        page = await client.telemetry.get_decision_chain(session_id, page_size=1000, page_token=page.next_page_token)
        steps += page.steps
    return Chain(client.space, page.diagnosis, tuple(steps), first.loose_tool_invocations)
