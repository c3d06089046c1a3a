"""Reads by key of many callers as one: what they share, and what stays each one's own."""

from typing import Any

from ramet.session.v1 import session_pb2 as pb
from ramet_server.database.database import Database
from ramet_server.domain.call import Call
from ramet_server.domain.errors import InvalidField
from ramet_server.domain.ids import new_id
from ramet_server.domain.limits import Limits
from ramet_server.domain.sharing import ALONE
from tests.session_service.storage import Storage, TurnedClock, statements

_LONG = "é" * 70_000


def _together(storage: Storage, method: str, *session_ids: str, calls: list[Call] | None = None) -> list[Any]:
    """Reads in the way of the server; returns the message, error or ALONE of each."""
    gathered = storage.service.gathers[method]
    requests = [getattr(pb, f"{method}Request")(session_id=session_id) for session_id in session_ids]
    answers = gathered.run(calls or [storage.call for _ in requests], [gathered.read(each) for each in requests])
    return [
        answer if answer is ALONE or isinstance(answer, Exception) else gathered.write(answer) for answer in answers
    ]


def test_many_sessions_are_one_statement(storage: Storage) -> None:
    made = [storage.put(f"s{number}", tags=["b", "a"][: number % 3], label=str(number)) for number in range(21)]
    with statements(storage.database) as seen:
        assert _together(storage, "GetSession", *(f"s{number}" for number in range(21))) == made
    assert len(seen) == 1


def test_many_slots_are_one_statement(storage: Storage) -> None:
    storage.put("written")
    storage.put("cleared")
    storage.put("unwritten")
    written, cleared = storage.put_insight("written", "text"), storage.put_insight("cleared", "")
    with statements(storage.database) as seen:
        answers = _together(storage, "GetInsight", "cleared", "written", "unwritten", "written")
    assert answers == [cleared, written, pb.Slot(), written]
    assert len(seen) == 1
    assert _together(storage, "GetMemory", "written") == [pb.Slot()]


def test_what_is_wrong_with_one_is_nobody_elses_error(storage: Storage) -> None:
    session = storage.put("main")
    for method, answer in (("GetSession", session), ("GetSystemPrompt", pb.Slot())):
        bad, good, gone = _together(storage, method, " naïve", "main", "gone")
        assert isinstance(bad, InvalidField)
        assert bad.field == "session_id"
        assert good == answer
        # Whether there is none is told by a reading of its own.
        assert gone is ALONE


def test_what_is_long_is_left_to_a_reading_of_its_own(storage: Storage) -> None:
    storage.put("short", metadata_json='"é"')
    storage.put("long", metadata_json=f'"{_LONG}"')
    storage.put_insight("short", "é")
    storage.put_insight("long", _LONG)
    for method in ("GetSession", "GetInsight"):
        short, long = _together(storage, method, "short", "long")
        assert short is not ALONE
        assert long is ALONE
    assert storage.insight("long").content == _LONG


def test_each_reads_in_its_own_space(database: Database, storage: Storage) -> None:
    other = Storage(database, f"space-{new_id()}", Limits(), TurnedClock())
    here, there = storage.put("main", label="here"), other.put("main", label="there")
    storage.put("only")
    calls = [storage.call, other.call, other.call]
    assert _together(storage, "GetSession", "main", "main", "only", calls=calls) == [here, there, ALONE]


def test_a_reading_lasts_until_the_last_of_its_callers_gives_up(storage: Storage) -> None:
    session = storage.put("main")
    late = Call(storage.space, deadline=0.0)
    assert _together(storage, "GetSession", "main", "main", calls=[late, storage.call]) == [session, session]
