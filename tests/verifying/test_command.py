"""The command: a line per finding, a summary, and an exit status."""

from __future__ import annotations

import json

from click.testing import CliRunner, Result

from ramet_server.commands import main
from ramet_server.database.tables import metadata
from tests.verifying.world import World

T = metadata.tables


def run(world: World, *arguments: str) -> Result:
    """Runs the command over the database of a world."""
    url = world.database.engine.url.render_as_string(hide_password=False)
    return CliRunner().invoke(main, ["verify", "--database-url", url, *arguments])


def harm(world: World) -> None:
    """Does two kinds of damage, one of which nobody can mend."""
    here = {"space_id": "space", "node_id": "main"}
    world.change(T["topology_node"], here, child_count=9)
    world.drop(T["record"], origin=world.origin("main"), seq=11)


def test_a_whole_database_exits_with_0(world: World) -> None:
    done = run(world)
    assert (done.exit_code, done.stdout) == (0, "findings=0 mended=0 left=0\n")


def test_findings_are_lines_and_exit_with_1(world: World) -> None:
    harm(world)
    done = run(world)
    assert done.exit_code == 1
    missing, count, summary = done.stdout.splitlines()
    assert count == "NODE_CHILD_COUNT space=space id=main: is child_count 9; should be 3"
    assert missing.startswith(f"RECORD_MISSING space=space id={world.origin('main')}: is session main: 1 records")
    assert summary == "findings=2 mended=0 left=2"
    assert run(world, "--space", "other").exit_code == 0


def test_repair_says_what_it_mended_and_what_it_left(world: World) -> None:
    harm(world)
    done = run(world, "--repair", "--json")
    assert done.exit_code == 1
    missing, count, summary = map(json.loads, done.stdout.splitlines())
    assert (missing["outcome"], count["outcome"]) == ("left", "mended")
    assert missing["reason"]
    assert summary == {"findings": 2, "mended": 1, "left": 1}
    assert count == {
        "code": "NODE_CHILD_COUNT",
        "space": "space",
        "id": "main",
        "found": "child_count 9",
        "expected": "3",
        "outcome": "mended",
        "reason": "",
    }


def test_what_was_mended_exits_with_0(world: World) -> None:
    world.change(T["topology_node"], {"space_id": "space", "node_id": "main"}, child_count=9)
    done = run(world, "--repair")
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "findings=1 mended=1 left=0")
    assert done.stdout.splitlines()[0].endswith("[mended]")


def test_where_it_cannot_look_it_exits_with_2(world: World, sqlite_url: str) -> None:
    for arguments in (
        ["--database-url", sqlite_url],
        ["--database-url", "nonsense"],
        ["--database-url", "sqlite:////nowhere/at/all.db"],
        ["--space", " a "],
        ["--unknown"],
    ):
        done = run(world, *arguments)
        assert done.exit_code == 2, arguments
        assert done.stderr
        assert not done.stdout
