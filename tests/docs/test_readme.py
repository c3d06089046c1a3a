"""Every command and every program of the README does what it says."""

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ramet_server.database import schema
from tests.docs.readme import ROOT, blocks, commands
from tests.harness.mariadb import MariaDb
from tests.harness.server import ServerProcess

ADDRESS = "127.0.0.1:50051"
"""Where the README's server listens; tests take a free port in its place."""

TOOLS = ROOT / ".tools" / "bin"
OF_CI = {"make test", "make check"}
"""Commands that run this very test, so that only CI can run them."""


def _environment(**settings: str) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RAMET_")}
    return clean | {"PATH": f"{TOOLS}:{os.environ['PATH']}"} | settings


def _run(command: str, **settings: str) -> str:
    shell = ["bash", "-c", command]
    done = subprocess.run(shell, cwd=ROOT, env=_environment(**settings), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """The server that ``make run`` starts, with a database and a port of its own."""
    folder = tmp_path_factory.mktemp("readme")
    settings = {"RAMET_DATABASE_URL": f"sqlite:///{folder / 'ramet.db'}"}
    with ServerProcess(folder, settings, ("make", "-C", str(ROOT), "--no-print-directory", "run")) as server:
        yield server
        # make hands the signal on, waits for the server to drain, and then ends by the same signal.
        assert server.terminate() == -signal.SIGTERM


def test_every_command_is_known_here() -> None:
    """A new command in the README needs a test, or a line in OF_CI."""
    known = [
        *OF_CI,
        "make run",
        "make demo",
        ".venv/bin/ramet-server all --help",
        "export RAMET_DATABASE_URL='mysql://ramet:secret@127.0.0.1:3306/ramet'",
        ".venv/bin/ramet-server migrate",
        ".venv/bin/ramet-server all",
    ]
    unknown = [command for command in commands() if command not in known and not command.startswith("grpcurl ")]
    assert unknown == []
    assert set(known) <= set(commands())


def test_ci_runs_what_this_test_cannot() -> None:
    assert set((ROOT / ".ci" / "run").read_text().splitlines()) >= OF_CI


def test_make_run_prints_the_address_and_a_line_to_try(made: ServerProcess) -> None:
    assert made.address
    line = made.process.stdout.readline() if made.process.stdout else ""
    assert line.startswith("Try: grpcurl -plaintext -d '{")
    assert made.address in line


def test_settings_are_told() -> None:
    assert "RAMET_DATABASE_URL" in _run(".venv/bin/ramet-server all --help")


def test_make_demo_plays() -> None:
    assert _run("make demo")


@pytest.mark.grpcurl
def test_grpcurl_lines(made: ServerProcess) -> None:
    lines = [command for command in commands() if command.startswith("grpcurl ")]
    printed = [_run(line.replace(ADDRESS, made.address)) for line in lines]
    assert len(printed) == 9
    assert "ramet.tree.v1.SessionTree" in printed[0]
    assert "你好 👋" in printed[4]
    assert "SERVING" in printed[5]


def test_python_programs(made: ServerProcess, tmp_path: Path) -> None:
    told = []
    for program in blocks("python"):
        script = tmp_path / "readme.py"
        script.write_text(program.text.replace(ADDRESS, made.address))
        told.append(_run(f"{shlex.quote(str(ROOT / '.venv/bin/python'))} {script}"))
    assert told == ["Be brief. 2 The user likes botany.\n", "It is 3.\n", "8\n", "6 0 0 0\n"]


@pytest.mark.mariadb
def test_mysql_lines(mariadb_server: MariaDb, tmp_path: Path) -> None:
    url = mariadb_server.new_database()
    assert schema.head() in _run(".venv/bin/ramet-server migrate", RAMET_DATABASE_URL=url)
    with ServerProcess(tmp_path, {"RAMET_DATABASE_URL": url}) as server:
        assert server.address
        assert server.terminate() == 0
