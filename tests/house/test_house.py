"""The rules of the house that no linter knows."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_GENERATED = re.compile(r"_pb2(_grpc)?\.pyi?$")
_SERVER = ("ramet_server/", "session_service/", "telemetry/", "tree_service/")
MAX_LINES = 400


def _tracked(*patterns: str) -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [
        name for name in listed.stdout.split("\0") if name and not _GENERATED.search(name) and (ROOT / name).exists()
    ]


def _python(*folders: str) -> dict[str, str]:
    return {name: (ROOT / name).read_text() for name in _tracked("*.py") if name.startswith(folders or ("",))}


def test_no_file_is_long() -> None:
    lines = {name: text.count("\n") for name, text in _python().items()}
    assert {name: count for name, count in lines.items() if count > MAX_LINES} == {}


def test_every_file_is_named_after_what_it_holds() -> None:
    vague = re.compile(r"(^|_)(utils?|helpers?|common|manager|misc)(_|$)")
    assert [name for name in _python() if vague.search(Path(name).stem)] == []


def test_only_serving_knows_a_status() -> None:
    places = [name for name, text in _python(*_SERVER).items() if "StatusCode" in text]
    assert [name for name in places if not name.startswith("ramet_server/serving/")] == []


def test_the_number_of_a_driver_error_is_known_in_one_room() -> None:
    # Deadlock, lock wait, duplicate key, too many connections, interrupted, server gone, lost: the tell-tale ones.
    number = re.compile(r"\b(1205|1213|1062|1040|1153|1317|1969|2006|2013|3024)\b")
    places = {name for name, text in _python(*_SERVER).items() if number.search(text)}
    assert places <= {"ramet_server/database/faults.py"}


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "requirements").glob("*.txt")))
def test_a_lock_pins_by_hash_and_names_no_index(name: str) -> None:
    entries = re.split(r"\n(?=\S)", (ROOT / "requirements" / name).read_text().strip())
    for entry in entries:
        if not entry.startswith("#"):
            assert re.match(r"[a-z0-9.-]+==\S+ \\\n    --hash=sha256:", entry), entry.splitlines()[0]


def test_no_node_lock_names_a_registry() -> None:
    locks = _tracked("*package-lock.json")
    assert len(locks) == 2
    for name in locks:
        assert '"resolved"' not in (ROOT / name).read_text(), name
