"""The parent of workers, over processes that only play them."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from ramet_server.serving.replicas import Replicas, ReplicasFailed
from ramet_server.serving.settings import Settings
from tests.harness.waiting import wait_until


class Play:
    """Two played workers and their parent in this process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.announced: list[str] = []
        self.replicas = Replicas(
            lambda number: [sys.executable, "-m", "tests.serving.played_worker", str(folder), str(number)],
            Settings(workers=2, lame_duck_seconds=0, grace_seconds=0),
            "127.0.0.1:1",
            pause_s=0.01,
        )

    def act(self, words: str) -> None:
        """Says what workers do that start from now on."""
        (self._folder / "play").write_text(words)

    def pids(self) -> list[int]:
        """The pids of the newest workers; none before all have told theirs."""
        texts = [path.read_text() for path in self._folder.glob("pid*")]
        return [int(text) for text in texts] if len(texts) == 2 and all(texts) else []

    def assert_gone(self) -> None:
        """Checks that no worker is left behind."""
        pids = self.pids()
        assert len(pids) == 2
        for pid in pids:
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)

    def refused(self) -> int:
        """How often a worker refused to start."""
        path = self._folder / "refused"
        return path.read_text().count("\n") if path.exists() else 0

    async def run(self, *signals: int, kill: int = 0) -> None:
        """Runs the parent; once the workers serve, signals come, or so many are killed and cannot be replaced."""

        def announce(text: str) -> None:
            self.announced.append(text)
            for number in signals:
                os.kill(os.getpid(), number)
            if kill:
                self.act("refuse")
            for pid in self.pids()[:kill]:
                os.kill(pid, signal.SIGKILL)

        await self.replicas.run(announce)


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """A parent of two workers that do nothing special."""
    play = Play(tmp_path)
    play.act("serve")
    return play


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_one_signal_drains_all_workers(play: Play, number: int) -> None:
    await play.run(number)
    assert play.announced == ["Listening 1"]
    play.assert_gone()


async def test_two_signals_end_workers_that_would_not_drain(play: Play) -> None:
    play.act("deaf")
    await play.run(signal.SIGTERM, signal.SIGINT)
    play.assert_gone()


async def test_signal_before_the_workers_serve_ends_them(play: Play) -> None:
    play.act("wait")
    run = asyncio.create_task(play.run())
    await asyncio.to_thread(wait_until, play.pids, "the workers run")
    os.kill(os.getpid(), signal.SIGTERM)
    await run
    assert play.announced == []
    play.assert_gone()


async def test_worker_that_ends_badly_in_the_drain_is_told(play: Play) -> None:
    play.act("exit 3")
    with pytest.raises(ReplicasFailed, match=r"^(Worker [12] ended by exit 3 while it drained\. ?){2}$"):
        await play.run(signal.SIGTERM)


@pytest.mark.parametrize(
    ("words", "told"),
    [("refuse", r"^No such database\.$"), ("die", r"^Worker [12] ended by SIGKILL before it could serve\.$")],
)
async def test_worker_that_cannot_begin_ends_the_whole(play: Play, words: str, told: str) -> None:
    play.act(words)
    with pytest.raises(ReplicasFailed, match=told):
        await play.run()
    assert play.announced == []


async def test_workers_that_cannot_be_replaced_end_the_whole(play: Play) -> None:
    with pytest.raises(ReplicasFailed, match=r"^No worker is left, and none can be started\. No such database\.$"):
        await play.run(kill=2)
    assert play.announced == ["Listening 1"]
    play.assert_gone()


async def test_whole_goes_on_while_one_worker_serves(play: Play) -> None:
    run = asyncio.create_task(play.run(kill=1))
    await asyncio.to_thread(wait_until, lambda: play.refused() > 4, "a worker is tried again and again")
    assert not run.done()
    os.kill(os.getpid(), signal.SIGTERM)
    await run
    play.assert_gone()
