"""What leaves comes back the same, on each backend and from one to the other."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from ramet.telemetry.v1.telemetry_pb2 import Event
from ramet_server.archiving import Counts, Export, Scope, ScopeKind
from ramet_server.database import schema
from ramet_server.database.database import Database
from ramet_server.domain.call import Call
from ramet_server.domain.limits import Limits
from tests.archiving.world import Chance, Home, lines_of, without_header
from tests.harness import sqlite
from tests.harness.mariadb import MariaDb
from tests.telemetry import events as e


@pytest.fixture
def empty(database_url: str) -> Iterator[Database]:
    """An empty database, on each backend."""
    opened = Database.open(database_url)
    schema.prepare(opened, Call(""))
    yield opened
    opened.close()


@pytest.fixture
def origin(tmp_path: Path) -> Iterator[Database]:
    """A SQLite database that archives leave."""
    opened = Database.open(sqlite.new_database(tmp_path, "origin.db"))
    schema.prepare(opened, Call(""))
    yield opened
    opened.close()


@pytest.mark.parametrize("seed", range(2))
def test_a_forest_made_by_chance_comes_back_the_same(origin: Database, empty: Database, seed: int) -> None:
    left = Home(origin, "space")
    Chance(left, seed).fill(150)
    archive = left.export()
    come = Home(empty, "space")
    new = come.take(archive)
    assert come.export() == archive
    assert come.everything() == left.everything()
    assert (new.sessions, new.nodes) == (len(left.session_ids()), len(left.forest.entries()))
    assert come.findings() == []
    # Each record once, as where it left: those that nobody shows there are swept first.
    left.sweep()
    come.sweep()
    for table in ("record", "session", "session_tag", "context_slot", "topology_node", "node_ref", "agent_step"):
        assert come.rows(table) == left.rows(table), table
    assert come.export() == archive


@pytest.mark.mariadb
def test_an_archive_goes_from_mariadb_to_sqlite(origin: Database, mariadb_server: MariaDb) -> None:
    url = mariadb_server.new_database()
    there = Database.open(url)
    schema.prepare(there, Call(""))
    left, come = Home(there, "space"), Home(origin, "space")
    Chance(left, 7).fill(150)
    archive = left.export()
    come.take(archive)
    assert come.export() == archive
    assert come.everything() == left.everything()
    there.close()
    mariadb_server.drop_database(url)


def test_what_came_goes_on_like_any_other(left: Home, come: Home) -> None:
    left.storage.put("main", "u a(x,y) t(x)")
    left.storage.fork("main", "child")
    left.storage.append("child", "u a")
    come.take(left.export())
    for home in (left, come):
        home.storage.append("main", "t(y) u a(z) u")
        home.storage.append("child", "u")
        home.storage.fork("main", "grandchild")
        home.storage.trim("main", 2)
        home.storage.delete("child")
        home.sweep()
    assert come.storage.said("main") == left.storage.said("main")
    assert come.storage.said("grandchild") == left.storage.said("grandchild")
    assert come.storage.context("main").incomplete_records == left.storage.context("main").incomplete_records
    assert come.findings() == []


def test_a_session_leaves_with_the_records_that_others_wrote(left: Home, come: Home) -> None:
    left.forest.grow(": main", "main: child other")
    left.storage.put("main", "u a u")
    left.storage.fork("main", "child")
    left.storage.append("child", "a")
    left.storage.fork("main", "other")
    left.told.tell(*_diagnosis("about-child", "child"), *_diagnosis("about-other", "other"))
    archive = left.export(Scope(ScopeKind.SESSION, "child"))
    come.take(archive)
    assert come.session_ids() == ["child"]
    assert come.storage.said("child") == "u a u a"
    assert come.forest.tree() == ["child"]
    assert come.forest.get("child").parent_id == ""
    assert [name for name in come.everything() if name.startswith("diagnosis")] == ["diagnosis about-child"]
    assert without_header(come.export(Scope(ScopeKind.SESSION, "child"))) == without_header(archive)
    assert come.findings() == []


def test_a_subtree_leaves_with_all_below_it_and_the_references_within(left: Home, come: Home) -> None:
    left.forest.grow(": root far", "root: top", "top: one two", "one: deep")
    for node_id in ("root", "top", "one", "deep", "far"):
        left.storage.put(node_id, "u")
    left.storage.fork("root", "two")
    left.forest.add_ref("two", "deep")
    left.forest.add_ref("two", "far")
    archive = left.export(Scope(ScopeKind.SUBTREE, "top"))
    come.take(archive)
    assert come.forest.tree() == ["top", "one", "two", "deep"]
    assert list(come.forest.get("two").refs) == ["deep"]
    assert come.session_ids() == ["deep", "one", "top", "two"]
    assert without_header(come.export(Scope(ScopeKind.SUBTREE, "top"))) == without_header(archive)
    # Where it stands already, nothing changes, though its top stands below another there.
    assert left.take(archive) == Counts()


def test_an_archive_is_of_one_moment_while_writers_go_on(left: Home) -> None:
    left.forest.grow(": main other", "main: child")
    for session_id in ("main", "other", "child"):
        left.storage.put(session_id, "u a " * 300, label="before")
    left.told.tell(*_diagnosis("d", "main"))
    before = left.export()
    written: list[bytes] = []

    def write(line: bytes) -> None:
        written.append(line)
        if len(written) == 700:
            left.storage.append("other", "u")
            left.storage.trim("child", 1)
            left.storage.delete("main")
            left.sweep()
            left.forest.delete("child")
            left.forest.relabel("other", "after")
            left.told.tell(*_diagnosis("later", "other"))

    Export(left.database, Limits(), left.clock, Scope(ScopeKind.SPACE)).run(left.call, write, lambda _: None)
    assert b"".join(written) == before
    assert left.export() != before


def test_a_source_stands_before_its_forks_whatever_the_clocks_say(left: Home, come: Home) -> None:
    left.storage.put("main", "u a u")
    left.clock.ahead = timedelta(hours=-1)
    left.storage.fork("main", "child")
    left.storage.append("child", "u")
    left.clock.ahead = timedelta(hours=-2)
    left.storage.fork("child", "grandchild")
    left.storage.trim("grandchild", 1)
    archive = left.export()
    ids = [line["id"] for line in lines_of(archive) if line.get("kind") == "session"]
    assert ids == ["main", "child", "grandchild"]
    come.take(archive)
    assert come.everything() == left.everything()
    assert without_header(come.export()) == without_header(archive)


def test_shared_records_leave_once(left: Home) -> None:
    left.storage.put("main", "u a u")
    for number in range(5):
        left.storage.fork("main", f"fork {number}")
        left.storage.append(f"fork {number}", "a")
    kinds = [line.get("kind") for line in lines_of(left.export())]
    assert kinds.count("record") == 3 + 5


def test_two_archives_of_one_forest_share_again(left: Home, come: Home) -> None:
    left.storage.put("main", "u a u")
    come.take(left.export())
    left.storage.fork("main", "child")
    before = come.rows("record")
    come.take(left.export())
    assert come.storage.said("child") == "u a u"
    assert come.rows("record") == before


def _diagnosis(name: str, conversation: str) -> list[Event]:
    return [e.started(f"{name}-a", 1, name, query="why", conversation_id=conversation), *e.steps(2, name)]
