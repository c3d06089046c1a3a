"""The commands: files and pipes, what they tell, what they refuse, and an import that is killed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ramet_server.commands import main
from ramet_server.database import schema
from ramet_server.database.database import Database
from ramet_server.domain.call import Call
from tests.archiving.world import Home
from tests.harness.server import PROGRAM
from tests.harness.waiting import wait_until


@pytest.fixture
def home(database_url: str) -> Iterator[Home]:
    """A space in a database of the test's own, with a session of 1,200 records and a fork, on each backend."""
    opened = Database.open(database_url)
    schema.prepare(opened, Call(""))
    home = Home(opened, "team")
    home.forest.grow(": main", "main: child")
    home.storage.put("main", "u a " * 500, label="Main")
    home.storage.append("main", "u a " * 100)
    home.storage.fork("main", "child")
    home.storage.append("child", "u")
    yield home
    opened.close()


def run(*arguments: str | Path, **options: object) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)), **options)  # type: ignore[arg-type]  # CliRunner's own


def test_a_space_goes_through_a_file_and_a_pipe(home: Home, database_url: str, tmp_path: Path) -> None:
    file = tmp_path / "team.jsonl"
    exported = run("export", "--database-url", database_url, "--space", "team", file)
    assert exported.exit_code == 0, exported.output
    assert "Exported 2 sessions, 1201 records, 2 nodes" in exported.stderr
    assert list(tmp_path.glob("*.part")) == []
    piped = run("export", "--database-url", database_url, "--space", "team", "-")
    assert piped.stdout_bytes == file.read_bytes() == home.export()
    # The archive names its space; another may be chosen.
    again = run("import", "--database-url", database_url, file)
    assert again.exit_code == 0, again.output
    assert "New in space team: 0 sessions, 0 records, 0 nodes" in again.stderr
    copied = run("import", "--database-url", database_url, "--space", "copy", input=file.read_bytes())
    assert "New in space copy: 2 sessions, 1201 records, 2 nodes" in copied.stderr
    assert Home(home.database, "copy").storage.said("child") == home.storage.said("child")


def test_parts_of_a_space_leave_alone(home: Home, database_url: str) -> None:
    for option, name in (("--session", "child"), ("--subtree", "main")):
        part = run("export", "--database-url", database_url, "--space", "team", option, name)
        header = json.loads(part.stdout_bytes.splitlines()[0])
        assert (header["scope"], header["id"], header["space"]) == (option[2:], name, "team")
    assert home.findings() == []


def test_an_import_sets_an_empty_database_up(home: Home, tmp_path: Path) -> None:
    file, url = tmp_path / "team.jsonl", f"sqlite:///{tmp_path / 'fresh.db'}"
    file.write_bytes(home.export())
    assert run("import", "--database-url", url, file).exit_code == 0
    assert run("export", "--database-url", url, "--space", "team").stdout_bytes == file.read_bytes()


def test_transcripts_and_folders_come_through_the_same_door(sqlite_url: str, tmp_path: Path) -> None:
    chat, folder = tmp_path / "chat.json", tmp_path / "sessions" / "one"
    chat.write_text('[{"role": "user", "content": "hi"}]')
    folder.mkdir(parents=True)
    (folder / "meta.json").write_text("{}")
    assert "1 sessions, 1 records, 1 nodes" in run("import", "--database-url", sqlite_url, chat).stderr
    assert "1 sessions, 0 records, 1 nodes" in run("import", "--database-url", sqlite_url, folder.parent).stderr
    cut = run("import", "--database-url", sqlite_url, input=b'[{"role": "user", "cont')
    assert (cut.exit_code, cut.stderr.splitlines()[-1]) == (1, "Error: line 1: is neither an archive nor JSON")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["export", "--session", "nobody"], "Neither a session nor a node has this id."),
        (["export", "--subtree", "nobody"], "No node has this id."),
        (["export", "--session", "a", "--subtree", "b"], "exclude each other"),
        (["export", "--space", " "], "The space must be"),
        (["export", "--redact", "nothing"], "names no function"),
        (["import", "--resume", "--ids", "new"], "only a --map-file knows"),
        (["import", "--map-file", "x"], "is for --ids new"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_line(sqlite_url: str, arguments: list[str], told: str) -> None:
    assert run("migrate", "--database-url", sqlite_url).exit_code == 0
    refused = run(*arguments, "--database-url", sqlite_url)
    assert refused.exit_code != 0
    assert told in refused.stderr
    assert "Traceback" not in refused.output


def test_an_export_that_fails_leaves_no_file(home: Home, database_url: str, tmp_path: Path) -> None:
    file = tmp_path / "team.jsonl"
    file.write_text("the one before")
    failed = run("export", "--database-url", database_url, "--space", "team", "--redact", "json:loads", file)
    assert failed.exit_code == 1
    assert "Error: The redaction of session.label failed: TypeError" in failed.stderr
    assert file.read_text() == "the one before"
    assert list(tmp_path.glob("*.part")) == []


def test_an_import_that_is_killed_goes_on(home: Home, database_url: str) -> None:
    archive = home.export()
    lines = archive.splitlines(keepends=True)
    come = Home(home.database, "come")
    before = come.rows("record")
    command: list[str | Path] = [PROGRAM, "import", "--database-url", database_url, "--space", "come"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as importing:
        assert importing.stdin is not None
        importing.stdin.writelines(lines[:1150])
        importing.stdin.flush()
        wait_until(lambda: come.rows("record") >= before + 1000, "two batches are stored")
        importing.kill()
    assert (come.session_ids(), come.rows("arriving_session")) == ([], 1)
    assert come.findings() == []
    cut = run("import", "--database-url", database_url, "--space", "come", "--resume", input=b"".join(lines[:1150]))
    assert "Error: line 1151: the file ends before its last line: it was cut" in cut.stderr
    assert (come.session_ids(), come.rows("record")) == ([], before + 1000)
    whole = run("import", "--database-url", database_url, "--space", "come", "--resume", input=archive)
    assert "New in space come: 2 sessions" in whole.stderr
    assert come.everything() == home.everything()
    assert (come.rows("arriving_session"), come.findings()) == (0, [])
