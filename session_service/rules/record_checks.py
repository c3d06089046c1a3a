"""What a record may be, checked before any SQL."""

from collections.abc import Sequence

from ramet_server.domain.errors import InvalidField, too_large
from ramet_server.domain.json_text import check_json
from ramet_server.domain.limits import Limits
from ramet_server.domain.text import check_label, check_text
from session_service.rules.values import NewRecord, Role, ToolCall

SHORT_TEXT_CHARACTERS = 256
"""Longest name, tool name and id of a tool call, in characters."""


def check_records(records: Sequence[NewRecord], limits: Limits, field: str) -> list[int]:
    """Returns the size of each record, in bytes of UTF-8, if all may be stored together."""
    if len(records) > limits.max_append_records:
        raise too_large(field, limits.max_append_records, "records", field)
    sizes = []
    total = 0
    for place, record in enumerate(records):
        is_plain = _is_plain(record)
        size = len(record.content) if is_plain else record.text_bytes()
        total += size
        if size > limits.max_record_bytes:
            raise too_large(f"{field}[{place}]", limits.max_record_bytes, "bytes", f"{field}[{place}]")
        if total > limits.max_append_bytes:
            raise too_large(field, limits.max_append_bytes, "bytes", field)
        if not is_plain:
            _check_record(record, limits, f"{field}[{place}]")
        sizes.append(size)
    return sizes


def _is_plain(record: NewRecord) -> bool:
    """Tells whether a record is ASCII and nothing else: only its size is left to check then, in a third of the time."""
    return (
        record.content.isascii()
        and "\0" not in record.content
        and record.role is not Role.TOOL
        and record.parts_json is None
        and not record.tool_calls
        and record.tool_call_id is None
        and record.name is None
        and record.metadata_json is None
    )


def _check_record(record: NewRecord, limits: Limits, at: str) -> None:
    check_text(record.content, f"{at}.content", limits.max_record_bytes)
    if record.parts_json is not None:
        check_json(record.parts_json, f"{at}.parts_json", limits.max_record_bytes)
    if record.metadata_json is not None:
        check_json(record.metadata_json, f"{at}.metadata_json", limits.max_json_bytes)
    if record.name is not None:
        check_label(record.name, f"{at}.name", SHORT_TEXT_CHARACTERS)
    _check_tool_call_id(record, at)
    if record.tool_calls:
        _check_tool_calls(record, limits, at)


def _check_tool_call_id(record: NewRecord, at: str) -> None:
    field = f"{at}.tool_call_id"
    if record.role is Role.TOOL:
        if not record.tool_call_id:
            raise InvalidField(f"{field} is required in role TOOL.", field=field)
        check_label(record.tool_call_id, field, SHORT_TEXT_CHARACTERS)
    elif record.tool_call_id:
        raise InvalidField(f"{field} is only for role TOOL.", field=field)


def _check_tool_calls(record: NewRecord, limits: Limits, at: str) -> None:
    field = f"{at}.tool_calls"
    if record.role is not Role.ASSISTANT:
        raise InvalidField(f"{field} are only for role ASSISTANT.", field=field)
    if len(record.tool_calls) > limits.max_tool_calls:
        raise too_large(field, limits.max_tool_calls, "calls", field)
    seen: set[str] = set()
    for place, call in enumerate(record.tool_calls):
        _check_tool_call(call, limits, f"{field}[{place}]")
        if call.call_id in seen:
            raise InvalidField(f"{field}[{place}].id comes twice in its record.", field=f"{field}[{place}].id")
        seen.add(call.call_id)


def _check_tool_call(call: ToolCall, limits: Limits, at: str) -> None:
    for value, name in ((call.call_id, "id"), (call.name, "name")):
        if not value:
            raise InvalidField(f"{at}.{name} is required.", field=f"{at}.{name}")
        check_label(value, f"{at}.{name}", SHORT_TEXT_CHARACTERS)
    if call.arguments_json:
        check_json(call.arguments_json, f"{at}.arguments_json", limits.max_record_bytes)
