"""Messages become values and back, and no field is forgotten on the way."""

import dataclasses
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp

import ramet
from ramet.client import (
    History,
    Record,
    Role,
    SessionFilter,
    SessionStatus,
    ToolCall,
    convert,
    tree_convert,
    tree_values,
    values,
)
from ramet.session.v1 import session_pb2
from ramet.tree.v1 import tree_pb2

READ = [
    (session_pb2.Session, convert.session_in),
    (session_pb2.Record, convert.record_in),
    (session_pb2.Slot, convert.slot_in),
    (session_pb2.SessionSlots, convert.slots_in),
    (session_pb2.GetContextResponse, convert.context_in),
    (session_pb2.DiffSessionsResponse, convert.diff_in),
    (session_pb2.GetServerInfoResponse, convert.server_info_in),
    (tree_pb2.Node, tree_convert.node_in),
    (tree_pb2.TreeEntry, tree_convert.entry_in),
    (tree_pb2.Config, tree_convert.config_in),
    (tree_pb2.MoveNodeResponse, tree_convert.moved_in),
    (tree_pb2.GetServerInfoResponse, tree_convert.server_info_in),
]


def filled(kind: type[Message], start: int = 1) -> Any:
    """A message with every field set, each to a value of its own."""
    message = kind()
    fields: Any = kind.DESCRIPTOR.fields
    for number, field in enumerate(fields, start):
        value = _value(field, number)
        if field.is_repeated:
            getattr(message, field.name).extend([value])
        elif isinstance(value, Message):
            getattr(message, field.name).CopyFrom(value)
        else:
            setattr(message, field.name, value)
    return message


def _value(field: Any, number: int) -> Any:
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        if field.message_type.full_name == "google.protobuf.Timestamp":
            return Timestamp(seconds=1_800_000_000 + number, nanos=123_456_000)
        return filled(GetMessageClass(field.message_type), number * 10)
    if field.type == FieldDescriptor.TYPE_STRING:
        return f"{field.name} {number} 🌱"
    return 2 if field.type == FieldDescriptor.TYPE_ENUM else number


@pytest.mark.parametrize(("kind", "read"), READ)
def test_every_field_of_a_message_reaches_its_value(kind: type[Message], read: Any) -> None:
    value = read(filled(kind))
    assert {field.name for field in dataclasses.fields(value)} == {field.name for field in kind.DESCRIPTOR.fields}
    empty = {name: got for name, got in dataclasses.asdict(value).items() if not got}
    assert not empty


def test_a_record_that_was_read_is_appended_as_it_was() -> None:
    message = filled(session_pb2.Record)
    expected = session_pb2.Record()
    expected.CopyFrom(message)
    for output_only in ("seq", "created_at", "erased_at"):
        expected.ClearField(output_only)
    assert convert.record_out(convert.record_in(message)) == expected


def test_constructors_make_records_of_each_role() -> None:
    call = ToolCall("c1", "grep", '{"b":1,"aa":2}')
    assert Record.user("Hi", name="ann") == Record(Role.USER, "Hi", name="ann")
    assert Record.system("Be brief.") == Record(Role.SYSTEM, "Be brief.")
    assert Record.assistant(tool_calls=[call]) == Record(Role.ASSISTANT, tool_calls=(call,))
    assert Record.tool("c1", "out", name="grep") == Record(Role.TOOL, "out", tool_call_id="c1", name="grep")


def test_unset_and_empty_stay_different() -> None:
    assert convert.slot_in(session_pb2.Slot()).content is None
    assert convert.slot_in(session_pb2.Slot(content="")).content == ""
    for config in (
        tree_values.Config(),
        tree_values.Config(skills=()),
        tree_values.Config("", ("a",)),
    ):
        assert tree_convert.config_in(tree_convert.config_out(config)) == config
    assert convert.record_in(session_pb2.Record(role=session_pb2.ROLE_USER)).name is None


def test_a_filter_is_sent_whole() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
    chosen = SessionFilter(SessionStatus.ARCHIVED, ("a",), "La", at, at, at, at)
    message = convert.filter_out(chosen)
    assert len(message.ListFields()) == len(message.DESCRIPTOR.fields)
    assert convert.time_in(message.created_from) == at


def test_times_keep_their_microseconds_and_are_in_utc() -> None:
    here = datetime(2026, 1, 2, 3, 4, 5, 678901, timezone(timedelta(hours=8)))
    stamp = convert.time_out(here, "at")
    assert stamp is not None
    assert convert.time_in(stamp) == here
    assert convert.time_in(stamp).tzinfo is UTC


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ramet.InvalidArgument, match="time zone"):
        convert.time_out(datetime(2026, 1, 2), "at")  # noqa: DTZ001 - that is the point


@pytest.mark.parametrize(
    ("history", "field"),
    [
        (History.none(), "none"),
        (History.everything(), "all"),
        (History.up_to(7), "up_to_seq"),
        (History.last(3), "last"),
        (History.of([Record.user("a")]), "records"),
    ],
)
def test_each_history_sets_its_field(history: History, field: str) -> None:
    request = session_pb2.ForkSessionRequest()
    convert.history_out(history, request)
    assert request.WhichOneof("history") == field


def test_a_history_of_no_records_is_still_said() -> None:
    request = session_pb2.ForkSessionRequest()
    convert.history_out(History.of([]), request)
    assert request.WhichOneof("history") == "records"


def test_plain_words_serve_for_enums() -> None:
    assert convert.role_out("user") == session_pb2.ROLE_USER  # type: ignore[arg-type] # what an untyped caller writes
    with pytest.raises(ramet.InvalidArgument, match="usr"):
        convert.role_out("usr")  # type: ignore[arg-type] # likewise


def test_every_enum_number_of_the_contract_is_known() -> None:
    pairs = [
        (session_pb2.Role, values.Role),
        (session_pb2.SessionStatus, values.SessionStatus),
        (session_pb2.SessionOrder, values.SessionOrder),
        (session_pb2.SlotName, values.SlotName),
        (tree_pb2.DeletePolicy, tree_values.DeletePolicy),
        (tree_pb2.SessionStatus, values.SessionStatus),
    ]
    for wire, own in pairs:
        prefix = f"{_shout(wire.DESCRIPTOR.name)}_"
        names = {name.removeprefix(prefix).lower() for name, number in wire.items() if number}
        assert names == {member.value for member in own}


def _shout(name: str) -> str:
    return "".join(f"_{letter}" if letter.isupper() else letter.upper() for letter in name).removeprefix("_")
