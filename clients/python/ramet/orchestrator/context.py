"""What a send says to the model: system prompt, the session's name, insight, history, message, in this order."""

from collections.abc import Iterable, Sequence

from ramet.client import Client, Context, Record, Role
from ramet.client.arguments import of_kind, refused
from ramet.orchestrator.calling import call
from ramet.orchestrator.config import Budget, Compress, Runtime

__all__ = ["complete_groups", "history_of", "messages_of", "read_context"]


async def read_context(client: Client, session_id: str, runtime: Runtime) -> Context:
    """Reads what a send needs, in one call."""
    budget = runtime.budget or Budget()
    if runtime.compress is not None:
        # Whatever is over the budget is what compress is for.
        return await client.sessions.get_context(session_id)
    return await client.sessions.get_context(session_id, max_records=budget.records, max_characters=budget.characters)


async def history_of(context: Context, runtime: Runtime) -> tuple[Record, ...]:
    """Returns the history of a send, made shorter where it is over the budget and there is a function for that."""
    if runtime.compress is None or not _is_over(context, runtime.budget):
        return context.records
    return complete_groups(await _compressed(runtime.compress, context.records, runtime.budget or Budget()))


def messages_of(context: Context, history: Sequence[Record], message: Record) -> list[Record]:
    """Puts together what the model reads."""
    messages = []
    if context.system_prompt.content:
        messages.append(Record.system(context.system_prompt.content))
    if context.session.label:
        messages.append(Record.system(f"Session: {context.session.label}"))
    if context.insight.content:
        messages.append(Record.system(context.insight.content))
    return [*messages, *history, message]


def complete_groups(records: Iterable[Record]) -> tuple[Record, ...]:
    """Takes out calls without all their answers, and answers without their call, as the contract tells groups."""
    listed = list(records)
    kept: set[int] = set()
    open_groups: list[tuple[list[int], set[str]]] = []
    for place, record in enumerate(listed):
        if record.tool_calls:
            open_groups.append(([place], {tool_call.id for tool_call in record.tool_calls}))
        elif record.role is not Role.TOOL:
            kept.add(place)
            open_groups.clear()
        else:
            for group in reversed(open_groups):
                places, unanswered = group
                if record.tool_call_id in unanswered:
                    places.append(place)
                    unanswered.discard(record.tool_call_id or "")
                    if not unanswered:
                        kept.update(places)
                        open_groups.remove(group)
                    break
    return tuple(record for place, record in enumerate(listed) if place in kept)


async def _compressed(compress: Compress, records: tuple[Record, ...], budget: Budget) -> tuple[Record, ...]:
    made = await call(compress, records, budget)
    if isinstance(made, str | bytes) or not isinstance(made, Iterable):
        raise refused("compress", f"must make records, not {type(made).__name__}")
    return tuple(of_kind(Record, record, f"compress[{place}]") for place, record in enumerate(made))


def _is_over(context: Context, budget: Budget | None) -> bool:
    if budget is None or context.older_left_out:
        return True
    if budget.records is not None and len(context.records) > budget.records:
        return True
    return budget.characters is not None and sum(map(_characters, context.records)) > budget.characters


def _characters(record: Record) -> int:
    """Counts as a server counts a budget."""
    calls = sum(len(each.name) + len(each.arguments_json or "") for each in record.tool_calls)
    return len(record.content) + len(record.parts_json or "") + calls
