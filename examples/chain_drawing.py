"""Draws a decision chain as lines of text: agents nested, each step with its tokens, tools below their step."""

from collections.abc import Iterator, Sequence

from ramet.client import AgentStep, Diagnosis, ToolInvocation


def draw_chain(diagnosis: Diagnosis, steps: Sequence[AgentStep]) -> Iterator[str]:
    """Yields the diagnosis and a line per step and tool call."""
    totals = f"{_count(diagnosis.step_count, 'step')}, {_count(diagnosis.tool_call_count, 'tool call')}"
    yield f"{diagnosis.query} - {diagnosis.status}, {totals}, {_tokens(diagnosis.total_token_count)}"
    depths: dict[str, int] = {}
    for step in steps:
        depths[step.step_key] = depths.get(step.parent_step_key or "", 0) + 1
        lead = "   " * depths[step.step_key]
        thought = f" ({step.thought})" if step.thought else ""
        why = f", {step.error_message}" if step.error_message else ""
        tokens = _tokens(step.usage.total_tokens)
        yield f"{lead}{step.step_index} {step.agent_name}: {step.status}{why}, {tokens}{thought}"
        for tool in step.tool_invocations:
            yield f"{lead}   > {_tool(tool)}"


def _tool(tool: ToolInvocation) -> str:
    words = [f"{tool.tool_name}: "]
    if tool.retrieval is not None:
        found = tool.retrieval
        words.append(f"{found.layer or 'no layer'}, {found.l0_match_count} named, {found.l1_match_count} near, ")
    if not tool.success:
        words.append(tool.error_message)
    else:
        words.append(f"{tool.output_length} characters{', cut for the model' if tool.is_truncated else ''}")
    return "".join(words)


def _tokens(count: int | None) -> str:
    return "tokens unknown" if count is None else f"{count:,} tokens"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
