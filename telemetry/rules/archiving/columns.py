"""What an archive says of a diagnosis and its parts: every column that is not this database's own.

The numbers of rows are made anew where they arrive, in the order in which they left; ``step_id`` follows
from ``step_key``.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from ramet_server.domain.errors import InvalidField
from ramet_server.domain.ids import check_id
from ramet_server.domain.json_text import check_json
from ramet_server.domain.moments import read_moment
from ramet_server.domain.text import check_label, check_text
from telemetry.rules.values import FeedbackValue, RetrievalLayer, RunStatus

Row = Mapping[str, object]
"""Values by column: texts, numbers, flags and moments; None is NULL."""

_LARGEST_TEXT = 4 * 1024 * 1024
_GREATEST = (1 << 63) - 1


class Holds(StrEnum):
    """What a column holds, as far as an archive must know."""

    TEXT = "text"
    """Words of people, models and programs."""
    JSON = "json"
    """JSON, equal in value to what came."""
    KEY = "key"
    """An id, or a word of a closed list."""
    NUMBER = "number"
    """A number or a flag."""
    MOMENT = "moment"
    """A time of the server or a client."""
    STAMPS = "stamps"
    """What decides when a late event is merged; it holds ids and times only."""


@dataclass(frozen=True)
class Field:
    """One column."""

    holds: Holds
    read: Callable[[object, str], object]
    """Returns the value for the column; raises InvalidArgument for one that no server could have stored."""
    optional: bool = False


def _texts(limit: int | None = None, *, optional: bool = True) -> Field:
    def read(value: object, field: str) -> object:
        if not isinstance(value, str):
            raise InvalidField(f"{field} is a text.", field=field)
        return check_text(value, field, _LARGEST_TEXT) if limit is None else check_label(value, field, limit)

    return Field(Holds.TEXT, read, optional)


def _json(*, optional: bool = True) -> Field:
    def read(value: object, field: str) -> object:
        if not isinstance(value, str):
            raise InvalidField(f"{field} is JSON in a text.", field=field)
        return check_json(value, field, _LARGEST_TEXT)

    return Field(Holds.JSON, read, optional)


def _ids(*, optional: bool = False) -> Field:
    def read(value: object, field: str) -> object:
        if not isinstance(value, str):
            raise InvalidField(f"{field} is an id.", field=field)
        return check_id(value, field)

    return Field(Holds.KEY, read, optional)


def _words(kind: type[StrEnum], *, optional: bool = False) -> Field:
    def read(value: object, field: str) -> object:
        if value not in list(kind) or value == RunStatus.ABANDONED:
            raise InvalidField(f"{field} has no such value.", field=field)
        return value

    return Field(Holds.KEY, read, optional)


def _read_number(value: object, field: str) -> object:
    if type(value) is not int or not -_GREATEST <= value <= _GREATEST:
        raise InvalidField(f"{field} is a whole number.", field=field)
    return value


def _read_flag(value: object, field: str) -> object:
    if type(value) is not bool:
        raise InvalidField(f"{field} is true or false.", field=field)
    return value


def _read_time(value: object, field: str) -> datetime:
    return read_moment(value, field)


def _read_stamps(value: object, field: str) -> object:
    try:
        entries = json.loads(value) if isinstance(value, str) else None
        right = isinstance(entries, list) and all(
            [type(part) for part in entry[:4]] == [int, int, int, str] and all(type(name) is str for name in entry[4:])
            for entry in entries
        )
    except (ValueError, TypeError):
        right = False
    if not right:
        raise InvalidField(f"{field} cannot be read.", field=field)
    return value


_COUNT, _COUNTS = Field(Holds.NUMBER, _read_number), Field(Holds.NUMBER, _read_number, optional=True)
_FLAG = Field(Holds.NUMBER, _read_flag)
_TIME, _TIMES = Field(Holds.MOMENT, _read_time), Field(Holds.MOMENT, _read_time, optional=True)
_STAMPS = Field(Holds.STAMPS, _read_stamps, optional=True)

DIAGNOSIS: Mapping[str, Field] = {
    "session_id": _ids(),
    "status": _words(RunStatus),
    "agent_flow": _texts(32),
    "conversation_id": _ids(optional=True),
    "total_duration_ms": _COUNTS,
    "duration_flagged": _FLAG,
    "total_token_count": _COUNTS,
    "steps_with_tokens": _COUNT,
    "total_cost_micros": _COUNTS,
    "step_count": _COUNT,
    "tool_call_count": _COUNT,
    "confidence": _COUNTS,
    "feedback": _words(FeedbackValue, optional=True),
    "started_at": _TIMES,
    "ended_at": _TIMES,
    "last_heard_at": _TIME,
    "created_at": _TIME,
    "updated_at": _TIME,
    "merged_from": _STAMPS,
    "error_message": _texts(),
    "self_evaluation": _json(),
    "query": _texts(optional=False),
}
STEP: Mapping[str, Field] = {
    "session_id": _ids(),
    "step_key": _ids(),
    "parent_step_key": _ids(optional=True),
    "step_index": _COUNT,
    "agent_name": _texts(32, optional=False),
    "status": _words(RunStatus),
    "has_tool_call": _FLAG,
    "duration_ms": _COUNTS,
    "duration_flagged": _FLAG,
    "token_count": _COUNTS,
    "input_tokens": _COUNTS,
    "cached_tokens": _COUNTS,
    "output_tokens": _COUNTS,
    "cost_micros": _COUNTS,
    "model": _texts(256),
    "provider": _texts(256),
    "started_at": _TIMES,
    "ended_at": _TIMES,
    "created_at": _TIME,
    "updated_at": _TIME,
    "merged_from": _STAMPS,
    "error_message": _texts(),
    "thought": _texts(),
    "model_input": _json(),
    "model_output": _json(),
}
TOOL: Mapping[str, Field] = {
    "session_id": _ids(),
    "invocation_key": _ids(),
    "step_key": _ids(optional=True),
    "tool_name": _texts(64, optional=False),
    "output_length": _COUNTS,
    "retrieval_layer": _words(RetrievalLayer, optional=True),
    "l0_match_count": _COUNTS,
    "l1_match_count": _COUNTS,
    "is_truncated": _FLAG,
    "duration_ms": _COUNTS,
    "duration_flagged": _FLAG,
    "success": _FLAG,
    "started_at": _TIMES,
    "ended_at": _TIMES,
    "created_at": _TIME,
    "updated_at": _TIME,
    "merged_from": _STAMPS,
    "error_message": _texts(),
    "output_preview": _texts(),
    "retrieval_details": _json(),
    "input_params": _json(optional=False),
}
FEEDBACK: Mapping[str, Field] = {
    "session_id": _ids(),
    "source": _ids(),
    "value": _words(FeedbackValue),
    "updated_at": _TIME,
    "event_id": _ids(),
    "comment": _texts(optional=False),
}


def read_row(fields: Mapping[str, Field], told: Mapping[str, object]) -> Row:
    """Returns a row of what an archive tells; what it leaves out is NULL. Raises InvalidArgument."""
    unknown = told.keys() - fields.keys()
    if unknown:
        raise InvalidField(f"{min(unknown)} is not known.", field=min(unknown))
    row: dict[str, object] = {}
    for name, field in fields.items():
        value = told.get(name)
        if value is None and not field.optional:
            raise InvalidField(f"{name} is missing.", field=name)
        row[name] = None if value is None else field.read(value, name)
    return row
