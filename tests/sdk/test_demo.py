"""The demo runs by itself and against a server in use, and is loud when a number is wrong."""

import asyncio
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


async def play(address: str | None, *, folder: Path = EXAMPLES) -> tuple[int, str]:
    """Runs the demo as a program; returns its exit code and all that it printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAMET_")}
    if address is not None:
        environment["RAMET_ADDRESS"] = address
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        folder / "demo.py",
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode()


async def test_it_starts_its_own_services() -> None:
    code, output = await play(None)
    assert code == 0, output
    assert "started for this demo" in output
    assert "checks are right" in output
    assert "      4 executor: failed, ModelDownError: 503 from the provider, tokens unknown" in output
    assert "tool_acceptance                0.8   covers 2, unknown 3" in output
    assert "The six SQL queries of old give the numbers of the calls" in output


async def test_it_runs_again_and_again_on_a_server_in_use(address: str) -> None:
    for code, output in await asyncio.gather(play(address), play(address)):
        assert code == 0, output
        assert f"{address} (RAMET_ADDRESS)" in output
        assert "├─ 假设一: the query (query)" in output
        assert "lookup_knowledge: L0+L1, 1 named, 2 near, 784 characters, cut for the model" in output
        assert "SQL" not in output


async def test_without_its_server_it_stops_loudly() -> None:
    code, output = await play("127.0.0.1:1")
    assert code == 1
    assert "!!! THE DEMO STOPPED" in output
    assert "Traceback" not in output


def test_a_wrong_number_is_loud(capsys: pytest.CaptureFixture[str]) -> None:
    ledger = load("ledger").Ledger()
    ledger.same("records", 200, 200)
    assert ledger.verdict() == 0
    ledger.same("turns", 45, 46)
    assert ledger.verdict() == 1
    assert "THE DEMO WENT WRONG: 1 of 2 checks" in capsys.readouterr().out


def test_the_transcript_is_a_valid_conversation() -> None:
    transcript = load("transcript")
    records = transcript.read_transcript(EXAMPLES / "incident.jsonl")
    assert len(records) == 200
    asked = [call.id for record in records for call in record.tool_calls]
    answered = [record.tool_call_id for record in records if record.tool_call_id]
    assert asked == answered
    assert len(set(asked)) == len(asked)
    grouped = [place for group in transcript.groups(records) for place in group]
    assert len(grouped) == sum(bool(record.tool_calls or record.tool_call_id) for record in records)
    times = [record.client_time for record in records]
    assert times == sorted(times)
    text = "".join(record.content for record in records)
    assert any("\u4e00" <= letter <= "\u9fff" for letter in text)
    assert any(letter > "\uffff" for letter in text)


def load(name: str) -> Any:
    """Imports a module of the examples, which are no package."""
    spec = importlib.util.spec_from_file_location(f"examples_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
