"""Every field of every event with every bad value of its kind: that event alone is refused, at either door alike."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import grpc
import pytest

from ramet.telemetry.v1 import telemetry_pb2 as m
from ramet.telemetry.v1.telemetry_pb2_grpc import TelemetryStub
from tests.bad_input.checks import check_field, check_refusal
from tests.bad_input.contract import APPEND, STREAM
from tests.bad_input.doors import Door, refused
from tests.bad_input.fields import kind_of
from tests.bad_input.places import Place, places
from tests.bad_input.stage import Stage
from tests.bad_input.world import SENT
from tests.bad_input.writes import Write

_numbers = count()

Refused = list[tuple[str, str, str]]
"""Of each refused event its id, the reason and the field."""

_PLACES = [place for place in places(APPEND) if place.steps]
"""Every field within an event."""


def _changed(place: Place, write: Write, event_id: str) -> tuple[m.Event, str]:
    """Makes an event with another value in the place, and tells the field's path within the event."""
    request: Any = place.request()
    (_, index), within = place.steps[0], place.path.partition(".")[2]
    event: m.Event = request.events[index]
    event.event_id = event_id
    suffix = write(place.owner(request), place.field)
    return event, within + suffix


def _good(event_id: str) -> m.Event:
    event = m.Event(event_id=event_id, session_id="neighbour", step_started=m.StepStarted(agent_name="planner"))
    event.step_started.step_key = event_id
    event.occurred_at.FromSeconds(1_700_000_000)
    return event


def _append(door: Door, space: str, events: Sequence[m.Event]) -> tuple[Refused, str]:
    """Tells events at the unary door; returns what was refused, and all that was said of it."""
    answer = door.send(APPEND, m.AppendEventsRequest(events=events), space)
    assert answer.code is grpc.StatusCode.OK, answer
    reply = m.AppendEventsResponse.FromString(answer.messages[0])
    assert reply.accepted == len(events) - len(reply.refusals)
    return _told(reply.refusals)


def _stream(door: Door, space: str, *messages: m.StreamEventsRequest) -> list[m.StreamEventsResponse]:
    hello = m.StreamEventsRequest(hello=m.Hello(producer_id=f"producer-{next(_numbers)}"))
    first = [] if messages[0].HasField("hello") else [hello]
    stub: Any = TelemetryStub(door.channel)
    return list(stub.StreamEvents(iter([*first, *messages]), metadata=[("ramet-space", space)], timeout=60))


def _told(refusals: Sequence[m.Refusal]) -> tuple[Refused, str]:
    found = [(each.event_id, each.reason, each.field) for each in refusals]
    return found, " ".join(each.message for each in refusals)


@pytest.mark.parametrize("place", _PLACES, ids=str)
def test_each_bad_value_refuses_its_event_alone_at_either_door(stage: Stage, place: Place) -> None:
    bad = kind_of(place.field).bad
    events, expected = [_good("good")], []
    for number, each in enumerate(bad):
        event, path = _changed(place, each.write, f"bad-{number}")
        expected.append((event.event_id[:128], each.reason, path))
        events += [event, _good(f"good-{number}")]

    for door in stage.doors:
        for at_unary_door in (True, False):
            space = stage.unused_space()
            if at_unary_door:
                found, said = _append(door, space, events)
            else:
                batch = m.StreamEventsRequest(batch=m.EventBatch(first_seq=1, events=events))
                _, *acks = _stream(door, space, batch)
                assert acks[-1].ack.committed_through_seq == len(events)
                refusals = [refusal for ack in acks for refusal in ack.ack.refusals]
                assert [refusal.seq for refusal in refusals] == [2 * n + 2 for n in range(len(bad))]
                found, said = _told(refusals)
            assert found == expected
            assert SENT not in said
            assert _diagnoses(door, space) == {"neighbour": 1 + len(bad)}


def _diagnoses(door: Door, space: str) -> dict[str, int]:
    """Tells of each diagnosis how many steps it has."""
    listed: Any = door.sender(space)("Telemetry.ListDiagnosisSessions", m.ListDiagnosisSessionsRequest())
    return {each.session_id: each.step_count for each in listed.sessions}


@pytest.mark.parametrize("place", _PLACES, ids=str)
def test_each_value_at_the_edge_is_taken_everywhere(stage: Stage, place: Place) -> None:
    kind = kind_of(place.field)
    writes = [good.write for good in kind.good] + ([kind.other] if kind.other is not None else [])
    for door in stage.doors:
        space = stage.unused_space()
        events = [_changed(place, write, f"good-{number}")[0] for number, write in enumerate(writes)]
        if events:
            assert _append(door, space, events)[0] == []


@pytest.mark.parametrize("place", [place for place in places(APPEND) if not place.steps], ids=str)
def test_a_bad_list_of_events_is_refused_as_a_whole(stage: Stage, place: Place) -> None:
    for bad in kind_of(place.field).bad:
        request = place.request()
        bad.write(place.owner(request), place.field)
        answer = stage.refused(APPEND, request.SerializeToString())
        check_refusal(answer, grpc.StatusCode.INVALID_ARGUMENT, bad.reason)
        check_field(answer, place.path)


_MESSAGES = [place for place in places(STREAM) if not place.path.startswith("batch.events[")]
"""Every field of a stream's messages, but those within events."""


@pytest.mark.parametrize("place", _MESSAGES, ids=str)
def test_a_bad_message_ends_its_stream_with_its_field(stage: Stage, place: Place) -> None:
    for bad in kind_of(place.field).bad:
        answers = []
        for door in stage.doors:
            request: Any = place.request()
            bad.write(place.owner(request), place.field)
            with pytest.raises(grpc.RpcError) as error:
                _stream(door, stage.unused_space(), request)
            answers.append(refused(error.value))
        assert len({answer.refusal for answer in answers}) == 1
        check_refusal(answers[0], grpc.StatusCode.INVALID_ARGUMENT, bad.reason)
        check_field(answers[0], place.path)
