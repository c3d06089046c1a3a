"""Reads a transcript: JSON Lines in the shape of OpenAI's chat messages, with a ``time`` each."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from ramet import Record, Role, ToolCall


def read_transcript(path: Path) -> list[Record]:
    """Reads every line as a record; the arguments of tool calls stay the very text that they are."""
    with path.open(encoding="utf-8") as lines:
        return [_record(json.loads(line)) for line in lines]


def _record(line: dict[str, Any]) -> Record:
    calls = line.get("tool_calls", [])
    return Record(
        role=Role(line["role"]),
        content=line["content"],
        tool_calls=tuple(ToolCall(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in calls),
        tool_call_id=line.get("tool_call_id"),
        name=line.get("name"),
        client_time=datetime.fromisoformat(line["time"]),
    )


def turns(records: Sequence[Record]) -> Iterator[list[Record]]:
    """Splits a conversation before every word of a person; what comes before the first is no turn."""
    turn: list[Record] = []
    for record in records:
        if record.role is Role.USER and turn:
            yield turn
            turn = []
        turn.append(record)
    if turn:
        yield turn


def groups(records: Sequence[Record]) -> Iterator[range]:
    """Finds the tool-call groups as places in the list: a call's record and those that answer it."""
    for start, record in enumerate(records):
        if record.tool_calls:
            open_calls = {call.id for call in record.tool_calls}
            end = start + 1
            while end < len(records) and records[end].tool_call_id in open_calls:
                end += 1
            yield range(start, end)


def spoken(records: Sequence[Record]) -> list[Record]:
    """Keeps what people and the model said to each other, without tools: a fork's history by a function."""
    return [
        Record(record.role, record.content, name=record.name)
        for record in records
        if record.role in (Role.USER, Role.ASSISTANT) and record.content and not record.tool_calls
    ]
