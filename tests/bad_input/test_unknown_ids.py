"""Ids that name nothing, in every field that must name something."""

import grpc
import pytest

from tests.bad_input.checks import check_refusal
from tests.bad_input.contract import MUTATIONS, SERVED, Rpc
from tests.bad_input.fields import kind_of
from tests.bad_input.places import Place, all_places, places
from tests.bad_input.requests import valid_requests
from tests.bad_input.stage import Stage
from tests.bad_input.world import ARCHIVED, FOREIGN, SESSION

_UNKNOWN = {
    "an id that never was": "no-such-id",
    "another case": SESSION.upper(),
    "the beginning of one": SESSION[:-1],
    "one and more": f"{SESSION}x",
    "one of another space": FOREIGN,
    "a pattern": "%",
    "SQL": "x') OR 1=1 --",
}

_REFERENCES = [place for place in all_places() if kind_of(place.field).refers_to is not None]


@pytest.mark.parametrize("name", _UNKNOWN)
@pytest.mark.parametrize("place", _REFERENCES, ids=str)
def test_unknown_id_is_not_found(stage: Stage, place: Place, name: str) -> None:
    request = place.request()
    setattr(place.owner(request), place.field.name, _UNKNOWN[name])

    answer = stage.refused(place.rpc, request.SerializeToString())

    reason = kind_of(place.field).refers_to
    assert reason is not None
    check_refusal(answer, grpc.StatusCode.NOT_FOUND, reason)


_WRITES_OF_KNOWN = [rpc for rpc in MUTATIONS if any(place.rpc is rpc for place in _REFERENCES)]


@pytest.mark.parametrize("rpc", _WRITES_OF_KNOWN, ids=str)
def test_refused_write_leaves_nothing_in_a_space_that_is_not_used(stage: Stage, rpc: Rpc) -> None:
    for request in (make() for make in valid_requests(rpc)):
        for place in places(rpc):
            if kind_of(place.field).refers_to is not None and place.field.containing_type is rpc.request:
                setattr(request, place.field.name, f"no-such-{place.field.name}")
        if rpc.name == "SessionStorage.PutSession":
            request.expected_version = 1  # type: ignore[attr-defined]
        answer = stage.refused(rpc, request.SerializeToString(), f"unused-{rpc}")
        assert answer.code is grpc.StatusCode.NOT_FOUND, answer


def test_every_rpc_on_one_thing_is_tried() -> None:
    named = {place.rpc.name for place in _REFERENCES}
    # What takes no id, takes a list of them and names the unknown ones, or creates.
    free = {
        "SessionStorage.BatchGetSessions",
        "SessionStorage.BatchGetSlots",
        "SessionStorage.GetServerInfo",
        "SessionStorage.ListSessions",
        "SessionStorage.PutSession",
        "SessionTree.GetServerInfo",
        "SessionTree.ListNodes",
        "SessionTree.ListRoots",
        "SessionTree.WatchTree",
        "Telemetry.GetServerInfo",
        "Telemetry.ListDiagnosisSessions",
        "Telemetry.ListToolInvocations",
        "Telemetry.PutFeedback",
        "Telemetry.PutSelfEvaluation",
        "Telemetry.QueryMetrics",
        "Telemetry.TailEvents",
    }
    assert named | free == {rpc.name for rpc in SERVED}
    assert not named & free


def test_update_of_an_unknown_session_is_not_found(stage: Stage) -> None:
    for place in all_places():
        if place.rpc.name == "SessionStorage.PutSession" and place.path == "expected_version":
            request = place.request()
            request.session.id = "no-such-id"  # type: ignore[attr-defined]  # it is a PutSessionRequest
            request.expected_version = 1  # type: ignore[attr-defined]
            answer = stage.refused(place.rpc, request.SerializeToString())
            check_refusal(answer, grpc.StatusCode.NOT_FOUND, "SESSION_NOT_FOUND")
            return
    pytest.fail("PutSession has no expected_version any more")


_STILL_ALLOWED = {
    "SessionStorage.ArchiveSession",
    "SessionStorage.RestoreSession",
    "SessionStorage.DeleteSession",
    # Only reads its source.
    "SessionStorage.ForkSession",
}

_WRITES = [
    place
    for place in all_places()
    if place.rpc.name.startswith("SessionStorage.")
    and "request_id" in place.rpc.request.fields_by_name
    and place.path in ("session_id", "session.id")
    and place.rpc.name not in _STILL_ALLOWED
]


@pytest.mark.parametrize("place", _WRITES, ids=str)
def test_write_to_an_archived_session_is_refused(stage: Stage, place: Place) -> None:
    request = place.request()
    setattr(place.owner(request), place.field.name, ARCHIVED)

    answer = stage.refused(place.rpc, request.SerializeToString())

    check_refusal(answer, grpc.StatusCode.FAILED_PRECONDITION, "SESSION_ARCHIVED")


def test_every_write_to_a_session_is_tried() -> None:
    writes = {
        rpc.name
        for rpc in SERVED
        if rpc.name.startswith("SessionStorage.") and "request_id" in rpc.request.fields_by_name
    }
    assert {place.rpc.name for place in _WRITES} | _STILL_ALLOWED == writes
