"""A recorder and the real service, on each backend: what agents said is in the rows.

adk-python#5722, #6559, mlflow#24123, otel-collector#11056, openllmetry#627, langfuse#1631, #15372, langsmith-sdk#453.
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from ramet.recorder import AgentLoggingHook, Recorder, TokenTrackingModel, note_output, note_retrieval, record_tool
from ramet.telemetry.v1 import telemetry_pb2 as pb
from ramet_server.commands.services import TELEMETRY
from ramet_server.database.database import Database
from ramet_server.domain.ids import new_id
from tests.harness.muffle import Muffle
from tests.harness.server import running_server
from tests.harness.waiting import wait_until
from tests.recorder.test_away import QUICK
from tests.telemetry import events as e
from tests.telemetry.world import TurnedClock, World

HOOK = AgentLoggingHook("planner", model="m", provider="p")
MODEL = TokenTrackingModel(lambda: {"usage": {"prompt_tokens": 100, "completion_tokens": 7}})


@pytest.fixture(scope="module")
def address(database: Database) -> Iterator[str]:
    """A server over the module's database."""
    with running_server(database.engine.url.render_as_string(hide_password=False), [TELEMETRY]) as served:
        yield served


@pytest.fixture
def world(database: Database) -> World:
    """A space of which nothing was told."""
    return World(database, f"space-{new_id()}", TurnedClock())


@record_tool
def lookup_knowledge(question: str) -> str:
    """Looks something up."""
    note_retrieval(l0_match_count=1, l1_match_count=2, l0_titles=["Disk"], has_supplement=False)
    return "🦊" * 600 + question


def _diagnose(recorder: Recorder, query: str) -> None:
    with recorder.diagnosis(query, agent_flow="AI_OPS", conversation_id="talk") as diagnosis:
        HOOK.before_model([{"role": "user", "content": query}])
        MODEL()
        HOOK.after_model("look", tool_calls=[{"name": "lookup_knowledge", "arguments": "{}"}], thought=query)
        lookup_knowledge(query)
        diagnosis.self_evaluation(80, reasoning=query, tools_proposed=2, tools_accepted=1)
        diagnosis.feedback("user", useful=True, comment=query)


def test_what_agents_say_is_in_the_rows(address: str, world: World) -> None:
    with Recorder(address, space=world.space) as recorder:
        _diagnose(recorder, "why")
        report = recorder.flush(60)
    assert (report.acked, report.rejected, report.pending, report.dropped) == (7, 0, 0, 0)
    row = world.diagnosis()
    assert (row["query"], row["status"], row["agent_flow"], row["conversation_id"]) == (
        "why",
        "SUCCESS",
        "AI_OPS",
        "talk",
    )
    assert (row["step_count"], row["tool_call_count"], row["total_token_count"]) == (1, 1, 107)
    assert (row["confidence"], row["feedback"]) == (80, "useful")
    (step,) = world.steps()
    assert (step["agent_name"], step["model"], step["status"], step["has_tool_call"]) == (
        "planner",
        "m",
        "SUCCESS",
        True,
    )
    (tool,) = world.tools()
    assert (tool["output_preview"], tool["output_length"], tool["retrieval_layer"]) == ("🦊" * 500, 603, "L0+L1")
    assert tool["step_id"] == step["id"]


def test_a_masked_secret_is_in_no_table_no_log_and_no_spool(
    address: str, nowhere: str, world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def mask(text: str, where: str) -> str:
        return text.replace("s3cret", "***")

    with caplog.at_level(logging.DEBUG, logger="ramet"):
        with Recorder(nowhere, space=world.space, spool=tmp_path, mask=mask) as away:
            _diagnose(away, "s3cret")
        spooled = b"".join(path.read_bytes() for path in tmp_path.rglob("*.events"))
        with Recorder(address, space=world.space, spool=tmp_path, mask=mask) as recorder:
            assert recorder.flush(60).acked == 7
    assert b"***" in spooled
    assert b"s3cret" not in spooled
    rows = json.dumps(world.everything(), default=str)
    assert "***" in rows
    assert "s3cret" not in rows
    assert "s3cret" not in caplog.text


def test_twelve_recorders_at_once_lose_nothing(address: str, world: World) -> None:
    recorders = [Recorder(address, space=world.space) for _ in range(12)]
    for recorder in recorders:
        for number in range(10):
            _diagnose(recorder, f"q{number}")
    assert sum(recorder.flush(100).acked for recorder in recorders) == 12 * 10 * 7
    for recorder in recorders:
        recorder.close()
    assert len(world.steps()) == len(world.tools()) == len(world.words()) == 120


async def test_sub_agents_at_once_have_exactly_their_parents(address: str, world: World) -> None:
    async def sub_agent(name: str) -> None:
        hook = AgentLoggingHook(name)
        for _ in range(3):
            hook.before_model(name)
            await asyncio.sleep(0)
            hook.after_model(name)

    supervisor, names = AgentLoggingHook("supervisor"), ("a", "b", "c")
    async with Recorder(address, space=world.space) as recorder, recorder.diagnosis("why"):
        for _ in range(2):
            supervisor.before_model("why")
            supervisor.after_model("ask three")
            await asyncio.gather(*(sub_agent(name) for name in names))
        assert (await recorder.flush_async(60)).pending == 0
    steps = world.steps()
    above = [row["step_key"] for row in steps if row["agent_name"] == "supervisor"]
    assert [row["parent_step_key"] for row in steps if row["agent_name"] == "supervisor"] == [None, None]
    for name in names:
        under = [row["parent_step_key"] for row in steps if row["agent_name"] == name]
        assert under == [key for key in above for _ in range(3)], name
    assert [row["step_index"] for row in steps] == list(range(20))


async def test_a_cancelled_stream_is_a_cancelled_step_and_no_error(
    address: str, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    begun = asyncio.Event()

    async def parts() -> AsyncIterator[object]:
        yield {"usage": {"input_tokens": 7}}
        begun.set()
        await asyncio.Event().wait()

    async def agent() -> None:
        async with recorder.diagnosis("why"):
            HOOK.before_model("why")
            async for _ in TokenTrackingModel(parts)():
                pass

    with caplog.at_level(logging.INFO):
        async with Recorder(address, space=world.space) as recorder:
            task = asyncio.create_task(agent())
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await recorder.flush_async(60)
    (step,) = world.steps()
    assert (step["status"], step["error_message"], step["input_tokens"]) == ("CANCELLED", "", 7)
    assert world.diagnosis()["status"] == "CANCELLED"
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_tokens_that_no_model_told_are_unknown(address: str, world: World) -> None:
    silent = TokenTrackingModel(lambda: {"usage": None})
    with Recorder(address, space=world.space) as recorder:
        with recorder.diagnosis("why"):
            for model in (MODEL, silent):
                HOOK.before_model("why")
                model()
                HOOK.after_model("because")
        recorder.flush(60)
    assert [step["token_count"] for step in world.steps()] == [107, None]
    row = world.diagnosis()
    assert (row["total_token_count"], row["steps_with_tokens"], row["step_count"]) == (107, 1, 2)


def test_outputs_of_any_kind_are_previewed(address: str, world: World) -> None:
    large = "x" * 5_000_000
    outputs = {"large": large, "emoji": "a" * 499 + "🦊b", "surrogate": "a" * 10 + "\ud83e" + "b" * 600}

    def tool(name: str) -> str:
        if name == "large":
            note_output(outputs[name])
            return outputs[name][:100]
        return outputs[name]

    with Recorder(address, space=world.space) as recorder:
        with recorder.diagnosis("why"):
            for name in outputs:
                record_tool(name=name)(tool)(name)
        assert recorder.flush(60).rejected == 0
    told = {
        row["tool_name"]: (row["output_preview"], row["output_length"], row["is_truncated"]) for row in world.tools()
    }
    assert told == {
        "large": ("x" * 500, 5_000_000, True),
        "emoji": ("a" * 499 + "🦊", 501, False),
        "surrogate": ("a" * 10 + "�" + "b" * 489, 611, False),
    }


def test_an_ack_lost_after_the_commit_changes_no_row(address: str, world: World) -> None:
    with Muffle(address) as muffle:
        recorder = Recorder(muffle.address, space=world.space, limits=QUICK)
        _diagnose(recorder, "first")
        assert recorder.flush(60).acked == 7
        muffle.silence()
        _diagnose(recorder, "second")
        wait_until(lambda: len(world.words()) == 2, "the second is committed")
        before = world.everything()
        assert recorder.report().acked == 7
        muffle.cut()
        assert recorder.flush(60).acked == 14
        recorder.close()
    assert world.everything() == before
    assert [step["token_count"] for step in world.steps()] == [107, 107]


_KILLED = """
import os, signal, sys
from ramet.recorder import AgentLoggingHook, Recorder
recorder = Recorder(sys.argv[1], space=sys.argv[2])
with recorder.diagnosis("why", session_id="d"):
    step = AgentLoggingHook("planner").before_model("why")
    assert recorder.flush(60).acked == 2
    print(step.key, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_an_agent_that_was_killed_in_a_step_is_abandoned_until_a_late_end(address: str, world: World) -> None:
    command = [sys.executable, "-c", _KILLED, address, world.space]
    killed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr

    def statuses() -> list[pb.RunStatus.ValueType]:
        chain = world.service.GetDecisionChain(pb.GetDecisionChainRequest(session_id="d"), world.call)
        return [chain.session.status, *(step.status for step in chain.steps)]

    assert statuses() == [pb.RUN_STATUS_RUNNING] * 2
    world.clock.ahead += timedelta(hours=1)
    assert statuses() == [pb.RUN_STATUS_ABANDONED] * 2
    world.told(e.step_completed("late", killed.stdout.strip(), status=e.SUCCESS), e.completed("later"))
    assert statuses() == [pb.RUN_STATUS_SUCCESS] * 2
