"""The recorder's process is killed, starts again, or forks: what was on disk arrives, once and in order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ramet.recorder import Recorder
from tests.harness.waiting import wait_until
from tests.recorder.taking import TakingServer
from tests.recorder.test_away import QUICK, ask

FORK_SUPPORT = "GRPC_ENABLE_FORK_SUPPORT"

_DYING = """
import os, signal, sys, threading
from ramet.recorder import Recorder
recorder = Recorder(sys.argv[1], spool=sys.argv[2])
for number in range(int(sys.argv[3])):
    with recorder.diagnosis(f"q{number}"):
        pass
while recorder.report().spooled < 2 * int(sys.argv[3]):
    threading.Event().wait(0.01)
print("spooled", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""

_FORKING = """
import os, sys
from ramet.recorder import Recorder

def ask(recorder, query):
    with recorder.diagnosis(query):
        pass

recorder = Recorder(sys.argv[1], spool=sys.argv[2] or None)
if sys.argv[3] == "used":
    ask(recorder, "parent")
    assert recorder.flush(30).acked == 2
child = os.fork()
if child == 0:
    assert recorder.report().acked == 0
    ask(recorder, "child")
    report = recorder.close(5)
    print("child", report.acked, report.spooled, report.dropped, flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
ask(recorder, "later")
report = recorder.close(30)
print("parent", report.pending, report.dropped)
"""


def _run(code: str, *arguments: object, given: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    # As where nobody has set it: this process got it by its own import of ramet.
    environment = {name: value for name, value in os.environ.items() if name != FORK_SUPPORT} | (given or {})
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)


def _killed(nowhere: str, folder: Path, count: int = 50) -> None:
    ended = _run(_DYING, nowhere, folder, count)
    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, "spooled\n"), ended.stderr


def test_what_a_killed_process_spooled_is_sent_by_the_next_start(
    nowhere: str, server: TakingServer, tmp_path: Path
) -> None:
    _killed(nowhere, tmp_path)
    with Recorder(server.address, spool=tmp_path, limits=QUICK) as recorder:
        ask(recorder, 1, 1000)
        report = recorder.flush(30)
    assert (report.acked, report.pending, report.spooled, report.ever_spooled) == (102, 0, 0, 100)
    assert [query for query in server.queries() if query != "q1000"] == [f"q{number}" for number in range(50)]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("torn", [b"\x07", b"\xff" * 40, b"\0" * 5000])
def test_a_torn_tail_is_ignored(nowhere: str, server: TakingServer, tmp_path: Path, torn: bytes) -> None:
    _killed(nowhere, tmp_path)
    (segment,) = tmp_path.rglob("*.events")
    with segment.open("ab") as file:
        file.write(torn)
    with Recorder(server.address, spool=tmp_path, limits=QUICK) as recorder:
        assert recorder.flush(30).acked == 100
    assert len(server.queries()) == 50


def test_a_frame_that_was_cut_is_lost_alone(nowhere: str, server: TakingServer, tmp_path: Path) -> None:
    _killed(nowhere, tmp_path)
    (segment,) = tmp_path.rglob("*.events")
    os.truncate(segment, segment.stat().st_size - 1)
    with Recorder(server.address, spool=tmp_path, limits=QUICK) as recorder:
        assert recorder.flush(30).acked == 99
    assert len(server.queries()) == 50


def test_what_was_sent_before_the_kill_is_not_doubled(nowhere: str, server: TakingServer, tmp_path: Path) -> None:
    _killed(nowhere, tmp_path)
    server.lose_acks = 1
    for _ in range(2):
        with Recorder(server.address, spool=tmp_path, limits=QUICK) as recorder:
            recorder.flush(1)
    assert server.queries() == [f"q{number}" for number in range(50)]


def test_recorders_of_one_directory_do_not_take_from_each_other(server: TakingServer, tmp_path: Path) -> None:
    server.stop()
    recorders = [Recorder(server.address, spool=tmp_path, limits=QUICK) for _ in range(3)]
    for number, recorder in enumerate(recorders):
        ask(recorder, 20, 20 * number)
    wait_until(lambda: all(recorder.report().spooled == 40 for recorder in recorders), "it is on disk")
    server.start()
    assert [recorder.flush(30).acked for recorder in recorders] == [40, 40, 40]
    assert sorted(server.queries()) == sorted(f"q{number}" for number in range(60))
    for recorder in recorders:
        recorder.close()


def test_spaces_share_a_directory_and_do_not_meet(nowhere: str, server: TakingServer, tmp_path: Path) -> None:
    with Recorder(nowhere, space="one", spool=tmp_path) as recorder:
        ask(recorder, 1)
    with Recorder(server.address, space="two", spool=tmp_path) as recorder:
        ask(recorder, 1, 1)
        recorder.flush(30)
    assert (server.queries(), server.spaces) == (["q1"], {"two"})
    with Recorder(server.address, space="one", spool=tmp_path) as recorder:
        assert recorder.flush(30).acked == 2


def test_a_directory_that_cannot_be_written_costs_nothing_but_the_spool(server: TakingServer, tmp_path: Path) -> None:
    server.stop()
    (tmp_path / "file").write_text("")
    recorder = Recorder(server.address, spool=tmp_path / "file", limits=QUICK)
    ask(recorder, 10)
    assert recorder.flush(0.3).pending == 20
    server.start()
    assert recorder.flush(30).acked == 20
    recorder.close()


@pytest.mark.parametrize(
    ("before", "spooled", "child"),
    [("unused", True, "child 2 0 0"), ("used", True, "child 0 2 0"), ("used", False, "child 0 0 2")],
)
def test_a_forked_child_begins_empty_and_never_hangs(
    server: TakingServer, tmp_path: Path, before: str, spooled: bool, child: str
) -> None:
    ended = _run(_FORKING, server.address, tmp_path if spooled else "", before)
    assert ended.stdout == f"{child}\nparent 0 0\n", ended.stderr
    assert "fork_posix" not in ended.stderr, "gRPC's own handlers are off: they crash some children"
    if spooled:
        with Recorder(server.address, spool=tmp_path, limits=QUICK) as recorder:
            recorder.flush(30)
        assert server.queries().count("child") == 1
    assert server.queries().count("later") == 1


@pytest.mark.parametrize(("given", "kept"), [({}, "0"), ({FORK_SUPPORT: "1"}, "1")])
def test_the_handlers_of_grpc_are_off_unless_somebody_wants_them(given: dict[str, str], kept: str) -> None:
    ended = _run(f"import os, ramet; print(os.environ[{FORK_SUPPORT!r}])", given=given)
    assert ended.stdout == f"{kept}\n", ended.stderr
