"""The server is absent, black-holed, restarted or slow: the agent does not notice, and nothing is lost.

opentelemetry-python#4043, #2024, openai-agents-python#3354, ai-memory#203.
"""

from __future__ import annotations

import gc
import random
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ramet.recorder import AgentLoggingHook, Limits, Recorder
from tests.harness.waiting import wait_until
from tests.recorder.black_hole import BlackHole
from tests.recorder.taking import TakingServer

QUICK = Limits(linger_s=0.005, connect_s=0.5, ack_s=1.0, first_backoff_s=0.02, longest_backoff_s=0.1)


def ask(recorder: Recorder, count: int, first: int = 0) -> list[str]:
    """Records diagnoses, two events each; returns their questions."""
    queries = [f"q{number}" for number in range(first, first + count)]
    for query in queries:
        with recorder.diagnosis(query):
            pass
    return queries


def test_everything_arrives_in_order(server: TakingServer) -> None:
    with Recorder(server.address, space="mine", limits=QUICK) as recorder:
        queries = ask(recorder, 500)
        report = recorder.flush(30)
    assert (report.acked, report.pending, report.dropped, report.ever_spooled) == (1000, 0, 0, 0)
    assert server.queries() == queries
    assert server.spaces == {"mine"}
    assert max(server.batches) <= server.max_batch_events < sum(server.batches)


def test_events_go_by_bytes_and_by_time_as_well(server: TakingServer) -> None:
    server.max_batch_events = 1000
    recorder = Recorder(server.address, limits=replace(QUICK, batch_bytes=2000))
    ask(recorder, 1)
    wait_until(lambda: len(server.events) == 2, "its time is over, though nobody flushes")
    for number in range(100):
        ask(recorder, 1, number + 1)
    assert recorder.close(30).acked == 202
    assert max(server.sizes) <= 2000
    assert max(server.batches) > 2


def test_closing_with_the_server_away_keeps_its_promise_and_spools(nowhere: str, tmp_path: Path) -> None:
    recorder = Recorder(nowhere, spool=tmp_path)
    ask(recorder, 500)
    begun = time.monotonic()
    report = recorder.close(3)
    assert time.monotonic() - begun < 3.5
    assert (report.acked, report.pending, report.spooled, report.dropped) == (0, 1000, 1000, 0)


def test_closing_during_a_long_backoff_returns_at_once(nowhere: str, tmp_path: Path) -> None:
    recorder = Recorder(nowhere, spool=tmp_path, limits=Limits(first_backoff_s=60, longest_backoff_s=30))
    ask(recorder, 1)
    wait_until(lambda: recorder.report().spooled, "the first connection has failed")
    begun = time.monotonic()
    assert recorder.close(30).spooled == 2
    assert time.monotonic() - begun < 1


def test_flushing_with_the_server_away_tells_what_is_pending(nowhere: str) -> None:
    recorder = Recorder(nowhere)
    ask(recorder, 10)
    report = recorder.flush(0.3)
    assert (report.pending, report.dropped, report.acked) == (20, 0, 0)
    assert recorder.close(0.1).pending == 20


def test_the_random_numbers_of_the_application_stay_its_own(nowhere: str, tmp_path: Path) -> None:
    before = random.getstate()
    with Recorder(nowhere, spool=tmp_path, limits=QUICK) as recorder:
        ask(recorder, 1)
        wait_until(lambda: recorder.report().spooled, "a connection has failed, and its pause is drawn")
    assert random.getstate() == before


def test_a_recorder_that_nobody_holds_sends_the_rest_and_ends(server: TakingServer) -> None:
    recorder = Recorder(server.address, limits=QUICK)
    ask(recorder, 10)
    assert recorder._sender is not None
    ended = recorder._sender.ended
    del recorder
    gc.collect()
    wait_until(ended.is_set, "its thread has ended")
    assert len(server.queries()) == 10


@pytest.mark.parametrize("spooled", [True, False])
def test_closing_against_a_black_hole_keeps_its_promise(tmp_path: Path, spooled: bool) -> None:
    with BlackHole() as hole:
        recorder = Recorder(hole.address, spool=tmp_path if spooled else None)
        ask(recorder, 500)
        begun = time.monotonic()
        report = recorder.close(1)
        assert time.monotonic() - begun < 1.5
    assert (report.pending, report.spooled, report.acked) == (1000, 1000 if spooled else 0, 0)


def test_recording_against_a_black_hole_does_not_slow_the_agent(tmp_path: Path) -> None:
    hook = AgentLoggingHook("a")
    messages = [{"role": "user", "content": "why is it slow?"}]
    with BlackHole() as hole:
        recorder = Recorder(hole.address, spool=tmp_path)
        with recorder.diagnosis("q"):
            for _ in range(2000):
                # Each returns though nobody answers: what it costs is for benchmarks.
                hook.before_model(messages)
                hook.after_model("because")
        report = recorder.close(1)
    assert (report.pending, report.acked, report.dropped) == (4002, 0, 0)


def test_a_black_hole_that_was_a_server_is_noticed(server: TakingServer, tmp_path: Path) -> None:
    recorder = Recorder(server.address, spool=tmp_path, limits=QUICK)
    queries = ask(recorder, 5)
    assert recorder.flush().acked == 10
    server.stop()
    with BlackHole(server.port) as hole:
        queries += ask(recorder, 5, 5)
        wait_until(lambda: hole.accepted > 1, "it is given up and tried again")
        assert recorder.report().spooled == 10
    server.start()
    assert recorder.flush(60).pending == 0
    assert server.queries() == queries
    recorder.close()


@pytest.mark.parametrize("spooled", [True, False])
def test_a_server_that_restarts_twice_loses_nothing(server: TakingServer, tmp_path: Path, spooled: bool) -> None:
    recorder = Recorder(server.address, spool=tmp_path if spooled else None, limits=QUICK)
    queries = []
    for restart in range(3):
        queries += ask(recorder, 100, 200 * restart)
        if restart < 2:
            server.stop()
            queries += ask(recorder, 100, 200 * restart + 100)
            if spooled:
                wait_until(lambda: recorder.report().spooled >= 200, "what cannot be sent is on disk")
            server.start()
    recorder.flush(60)
    report = recorder.close()
    assert (report.acked, report.pending, report.dropped, report.rejected) == (1000, 0, 0, 0)
    assert server.queries() == queries
    assert (report.ever_spooled > 0) is spooled
    assert list(tmp_path.rglob("*.events")) == []


def test_a_slow_server_fills_the_spool_and_not_the_memory(server: TakingServer, tmp_path: Path) -> None:
    server.delay_s, server.credit_bytes = 0.02, 4096
    recorder = Recorder(server.address, spool=tmp_path, limits=Limits(linger_s=0.005, queue_bytes=400_000))
    queries = []
    for part in range(3):
        queries += ask(recorder, 400, 400 * part)
        wait_until(lambda: recorder._backlog.size < 50_000, "the queue is brought to disk")
    assert recorder.report().ever_spooled > 0
    report = recorder.close(60)
    assert (report.acked, report.pending, report.dropped) == (2400, 0, 0)
    assert server.queries() == queries


def test_an_ack_that_was_lost_counts_when_the_server_is_back(server: TakingServer) -> None:
    server.lose_acks = 3
    with Recorder(server.address, limits=QUICK) as recorder:
        queries = ask(recorder, 100)
        assert recorder.flush(30).acked == 200
    assert server.queries() == queries


def test_throttles_and_gaps_are_obeyed(server: TakingServer) -> None:
    server.throttles, server.gaps = 2, 2
    with Recorder(server.address, limits=QUICK) as recorder:
        queries = ask(recorder, 100)
        assert recorder.flush(30).acked == 200
    assert server.queries() == queries


def test_a_refused_event_is_counted_and_its_neighbours_arrive(server: TakingServer) -> None:
    server.refused = {"bad": "INVALID_FIELD"}
    with Recorder(server.address, limits=QUICK) as recorder:
        with recorder.diagnosis("q"):
            for name in ("good", "bad", "good"):
                AgentLoggingHook(name).before_model([])
        report = recorder.flush(30)
    assert (report.acked, report.rejected, report.pending) == (7, 1, 0)


def test_an_event_that_ends_streams_is_given_up(server: TakingServer, tmp_path: Path) -> None:
    server.senseless = "mad"
    with Recorder(server.address, spool=tmp_path, limits=QUICK) as recorder:
        with recorder.diagnosis("q"):
            for name in ("good", "mad", "good"):
                AgentLoggingHook(name).before_model([])
        report = recorder.flush(30)
    assert (report.acked, report.rejected, report.pending, server.dropped) == (7, 1, 0, 1)


def test_a_full_queue_drops_counts_by_kind_and_tells_the_server(server: TakingServer) -> None:
    server.stop()
    recorder = Recorder(server.address, limits=Limits(linger_s=0.005, queue_bytes=10_000, longest_backoff_s=0.1))
    queries = ask(recorder, 100)
    report = recorder.report()
    assert report.dropped == sum(report.dropped_by_kind.values()) == 200 - report.pending > 0
    assert set(report.dropped_by_kind) == {"diagnosis_started", "diagnosis_completed"}
    server.start()
    after = recorder.flush(60)
    assert (after.acked, after.pending, after.dropped) == (report.pending, 0, report.dropped)
    with recorder.diagnosis("later"):
        pass
    assert recorder.close(60).acked == after.acked + 2
    assert server.dropped == report.dropped
    assert server.queries() == [*queries[: len(server.queries()) - 1], "later"]


def test_a_full_spool_keeps_the_first_events_and_counts_the_others(server: TakingServer, tmp_path: Path) -> None:
    server.stop()
    limits = Limits(linger_s=0.005, queue_bytes=10_000, spool_bytes=20_000, first_backoff_s=0.02, longest_backoff_s=0.1)
    recorder = Recorder(server.address, spool=tmp_path, limits=limits)
    space = recorder._space_spool
    assert space is not None
    queries: list[str] = []
    while not recorder.report().dropped:
        queries += ask(recorder, 5, len(queries))
        wait_until(lambda: recorder._backlog.size < 2000 or space.room() < 2000, "the queue is on disk, or that full")
    report = recorder.report()
    assert report.dropped > 0
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) <= 20_000
    server.start()
    recorder.flush(60)
    after = recorder.close()
    assert (after.acked, after.pending) == (2 * len(queries) - after.dropped, 0)
    assert after.ever_spooled > 50
    assert server.dropped == after.dropped
    assert server.queries() == queries[: len(server.queries())]
