"""Records whose fields are each legal but do not fit together, wherever a request holds records."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import grpc
import pytest

from ramet.session.v1 import session_pb2 as s
from tests.bad_input.checks import check_field, check_refusal
from tests.bad_input.contract import SERVED, Rpc
from tests.bad_input.kinds import INVALID, MIB, TOO_LARGE
from tests.bad_input.places import Place, places
from tests.bad_input.stage import Stage


@dataclass(frozen=True)
class Misfit:
    """What makes a list of records illegal, and the path that is at fault, from the list on."""

    name: str
    make: Callable[[], list[s.Record]]
    paths: tuple[str, ...]
    reason: str = INVALID

    def __str__(self) -> str:
        return self.name


def _call(call_id: str = "call", arguments: str = "{}") -> s.ToolCall:
    return s.ToolCall(id=call_id, name="search", arguments_json=arguments)


def _calls_in(role: s.Role.ValueType) -> Callable[[], list[s.Record]]:
    return lambda: [s.Record(role=role, tool_calls=[_call()], tool_call_id="call" if role == s.ROLE_TOOL else "")]


def _answer_in(role: s.Role.ValueType) -> Callable[[], list[s.Record]]:
    return lambda: [s.Record(role=s.ROLE_USER, content="fine"), s.Record(role=role, tool_call_id="call")]


def _over_together() -> list[s.Record]:
    """Makes a record of which each text is within the limit, but not all of them together."""
    record = s.Record(
        role=s.ROLE_ASSISTANT,
        content="x" * MIB,
        parts_json='"' + "x" * (MIB - 2) + '"',
        metadata_json='"' + "x" * (MIB - 2) + '"',
    )
    record.tool_calls.append(_call(arguments='"' + "x" * MIB + '"'))
    return [s.Record(role=s.ROLE_USER), record]


def _over_in_all() -> list[s.Record]:
    """Makes records of which each is within the limit, but not all of them together."""
    return [s.Record(role=s.ROLE_USER, content="x" * (4 * MIB - 64)) for _ in range(4)] + [
        s.Record(role=s.ROLE_USER, content="x" * 257)
    ]


_MISFITS = [
    *(
        Misfit(f"tool calls in {s.Role.Name(role)}", _calls_in(role), ("[0].tool_calls",))
        for role in s.Role.values()
        if role not in (s.ROLE_UNSPECIFIED, s.ROLE_ASSISTANT)
    ),
    *(
        Misfit(f"a tool_call_id in {s.Role.Name(role)}", _answer_in(role), ("[1].tool_call_id",))
        for role in s.Role.values()
        if role not in (s.ROLE_UNSPECIFIED, s.ROLE_TOOL)
    ),
    Misfit(
        "an answer to no call",
        lambda: [s.Record(role=s.ROLE_TOOL, content="an answer")],
        ("[0].tool_call_id",),
    ),
    Misfit(
        "two calls of one id",
        lambda: [s.Record(role=s.ROLE_ASSISTANT, tool_calls=[_call("a"), _call("b"), _call("a")])],
        ("[0].tool_calls[2].id",),
    ),
    Misfit("a record without a role", lambda: [s.Record(role=s.ROLE_USER), s.Record(content="x")], ("[1].role",)),
    Misfit("a record over the limit in all its text", _over_together, ("[1]",), TOO_LARGE),
    Misfit("records over the limit in all", _over_in_all, ("",), TOO_LARGE),
]


def _lists_of_records(rpc: Rpc) -> Iterator[Place]:
    for place in places(rpc):
        message = place.field.message_type
        if place.field.is_repeated and message is not None and message.full_name == "ramet.session.v1.Record":
            yield place


@pytest.mark.parametrize("misfit", _MISFITS, ids=str)
@pytest.mark.parametrize("place", [place for rpc in SERVED for place in _lists_of_records(rpc)], ids=str)
def test_records_that_do_not_fit_are_refused(stage: Stage, place: Place, misfit: Misfit) -> None:
    request = place.request()
    records = getattr(place.owner(request), place.field.name)
    del records[:]
    records.extend(misfit.make())

    answer = stage.refused(place.rpc, request.SerializeToString())

    check_refusal(answer, grpc.StatusCode.INVALID_ARGUMENT, misfit.reason)
    check_field(answer, *(place.path + path for path in misfit.paths))
