"""A recorder and the real service, on each backend: what agents said is in the rows. langfuse#15372."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from ramet.recorder import AgentLoggingHook, Recorder, TokenTrackingModel, note_retrieval, record_tool
from ramet_server.commands.services import TELEMETRY
from ramet_server.database.database import Database
from ramet_server.domain.ids import new_id
from tests.harness.server import running_server
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
