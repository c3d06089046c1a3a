"""Telemetry that goes: by age, by space, and with its conversation; foretold before it goes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from click.testing import CliRunner

from ramet_server.commands import main
from ramet_server.database import schema
from ramet_server.database.database import Database
from ramet_server.database.tables.telemetry import diagnosis_session
from ramet_server.domain.call import Call
from ramet_server.domain.limits import Limits
from ramet_server.domain.retention import OnDelete, Retention, read_days
from ramet_server.sweeping import Counts, Sweep
from telemetry.rules.retention import Doomed
from tests.session_service.storage import Storage
from tests.telemetry import events as e
from tests.telemetry.world import TurnedClock
from tests.telemetry.world import World as Told


class World:
    """Telemetry and sessions over one database, under a choice of the operator."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.clock = TurnedClock()
        self.told = Told(database, "space", self.clock)
        self.sessions = Storage(database, "space", Limits(), self.clock)  # type: ignore[arg-type]  # a clock like theirs

    def sweep(self, retention: Retention) -> Sweep:
        """Returns the sweep under a choice."""
        return Sweep(self.database, replace(Limits(), retention=retention), self.clock)

    def pass_over(self, retention: Retention) -> Counts:
        """Makes one pass; what was remembered of events is of no interest here."""
        counts = self.sweep(retention).run(Call(""))
        return replace(counts, forgotten_events=0)

    def later(self, **by: float) -> None:
        """Lets time pass."""
        self.clock.ahead += timedelta(**by)

    def diagnose(self, session_id: str, conversation_id: str = "", told: Told | None = None) -> None:
        """Tells a diagnosis of two steps and a tool call."""
        (told or self.told).told(
            e.started(f"{session_id}-a", session_id=session_id, conversation_id=conversation_id),
            *e.steps(2, session_id),
            e.tool(f"{session_id}-t", "t", session_id=session_id),
            e.feedback(f"{session_id}-f", e.USEFUL, session_id=session_id),
        )

    def left(self) -> dict[str, str | None]:
        """Returns the conversation of each diagnosis that is left; all of its rows must be left with it."""
        found = self.told.everything()
        of = {row["session_id"]: row["conversation_id"] for row in found["diagnoses"]}
        for kind, count in (("steps", 2), ("tools", 1), ("words", 1)):
            assert len(found[kind]) == count * len(of), kind
        return of


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """An empty database, on each backend."""
    opened = Database.open(database_url)
    schema.prepare(opened, Call(""))
    yield World(opened)
    opened.close()


def test_nothing_goes_unless_it_was_asked_for(world: World) -> None:
    world.diagnose("d")
    world.later(days=1000)
    assert world.pass_over(Retention()) == Counts()
    assert world.left() == {"d": None}


def test_old_diagnoses_go_with_all_that_belongs_to_them(world: World) -> None:
    for name in ("old", "revived"):
        world.diagnose(name)
    world.later(days=20)
    world.told.told(e.completed("late", session_id="revived"))
    world.diagnose("new")
    world.later(days=11)
    month = Retention(days=30)
    foretold = world.sweep(month).foretell(Call(""))
    assert foretold.expired == [Doomed("space", 1, 2, 1)]
    assert set(world.left()) == {"old", "revived", "new"}
    assert world.pass_over(month) == Counts(expired_diagnoses=1)
    assert set(world.left()) == {"revived", "new"}
    assert world.pass_over(month) == Counts()


def test_each_space_may_have_days_of_its_own(world: World) -> None:
    spaces = {name: Told(world.database, name, world.clock) for name in ("audit", "brief", "other")}
    for told in spaces.values():
        world.diagnose("d", told=told)
    days, days_of = read_days("30, brief=1 ,audit=0")
    chosen = Retention(days, days_of)
    world.later(days=2)
    assert world.pass_over(chosen) == Counts(expired_diagnoses=1)
    world.later(days=300)
    assert world.pass_over(chosen) == Counts(expired_diagnoses=1)
    assert [name for name, told in spaces.items() if told.everything()["steps"]] == ["audit"]


def test_many_old_diagnoses_go_in_one_pass(world: World) -> None:
    for number in range(230):
        world.told.told(e.started(f"e{number}", session_id=f"d{number}"))
    world.later(days=2)
    assert world.pass_over(Retention(days=1)) == Counts(expired_diagnoses=230)
    assert not world.left()


def talk(world: World) -> None:
    """Two conversations with diagnoses; one of them is deleted."""
    for name in ("gone", "stays"):
        world.sessions.put(name, "u a")
        world.diagnose(f"of-{name}", name)
    world.diagnose("of-stranger", "never-a-session")
    world.sessions.delete("gone")
    world.later(seconds=1)
    world.diagnose("after", "gone")


@pytest.mark.parametrize("policy", OnDelete)
def test_a_deleted_conversation_takes_its_telemetry_as_the_policy_says(world: World, policy: OnDelete) -> None:
    talk(world)
    before = world.left()
    chosen = Retention(on_delete=policy)
    changed = [row["updated_at"] for row in world.told.rows(diagnosis_session, "session_id")]
    foretold = world.sweep(chosen).foretell(Call("")).left
    counts = world.pass_over(chosen)
    assert counts == foretold
    # What names no session that was deleted stays as it is, and so does what began afterwards.
    expected = dict(before)
    if policy is OnDelete.DETACH:
        assert counts == Counts(detached_diagnoses=1)
        expected["of-gone"] = None
        assert [row["updated_at"] for row in world.told.rows(diagnosis_session, "session_id")] == changed
    elif policy is OnDelete.DELETE:
        assert counts == Counts(deleted_diagnoses=1)
        del expected["of-gone"]
    else:
        assert counts == Counts()
    assert world.left() == expected
    assert world.pass_over(chosen) == Counts()
    assert world.sweep(chosen).foretell(Call("")).left == Counts()


def test_the_command_foretells_and_then_does_it(world: World, database_url: str) -> None:
    world.later(days=-40)
    talk(world)
    environment = {
        "RAMET_DATABASE_URL": database_url,
        "RAMET_TELEMETRY_DAYS": "30",
        "RAMET_TELEMETRY_ON_DELETE": "detach",
    }

    def run(*arguments: str) -> list[str]:
        done = CliRunner().invoke(main, ["sweep", *arguments], env=environment)
        assert done.exit_code == 0, done.output
        return done.output.splitlines()

    before = world.left()
    foretold = run("--dry-run")
    assert "space=space expired_diagnoses=4 steps=8 tool_invocations=4" in foretold
    assert "detached_diagnoses=1" in foretold
    assert world.left() == before
    assert "expired_diagnoses=4" in run()
    assert not world.left()


UNREADABLE = ["", "x", "-1", "1,2", "90,=3", "90,a=x", "90,a= ", "90, a b =1,\x00=1", "99999999", "\u0663"]


@pytest.mark.parametrize("text", UNREADABLE)
def test_days_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        read_days(text)
    done = CliRunner().invoke(main, ["sweep", "--telemetry-days", text])
    assert done.exit_code == 2
