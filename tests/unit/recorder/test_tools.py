"""Tool calls, and what a lookup tells. mlflow#24123, langfuse#1631."""

from __future__ import annotations

import asyncio
import json

import pytest

from ramet.recorder import Layer, note_output, note_retrieval, record_tool
from ramet.telemetry.v1 import telemetry_pb2 as pb
from tests.unit.recorder.listening import ListeningRecorder


def test_a_tool_call_tells_arguments_output_and_success() -> None:
    recorder = ListeningRecorder()

    @record_tool
    def add(a: int, b: int = 2, *more: int, scale: float = 1.0) -> dict[str, int]:
        """Adds."""
        return {"sum": a + b}

    assert add.__doc__ == "Adds."
    with recorder.diagnosis("why"):
        assert add(1, 5, 6, scale=2.0) == {"sum": 6}
    (tool,) = recorder.bodies("tool_completed")
    assert (tool.tool_name, tool.success, tool.is_truncated, tool.error_message) == ("add", True, False, "")
    assert json.loads(tool.input_params_json) == {"a": 1, "b": 5, "args": [6], "scale": 2.0}
    assert (tool.output_preview, tool.output_length) == ('{"sum": 6}', 10)
    assert tool.HasField("duration_ms")
    assert not tool.HasField("retrieval")


async def test_an_asynchronous_tool_fails_or_is_cancelled() -> None:
    recorder = ListeningRecorder()

    @record_tool(name="slow")
    async def tool(fail: bool) -> str:
        if fail:
            raise OSError("no disk")
        await asyncio.Event().wait()
        return ""

    async with recorder.diagnosis("why"):
        with pytest.raises(OSError, match="no disk"):
            await tool(True)
        task = asyncio.create_task(tool(False))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    told = [(tool.tool_name, tool.success, tool.error_message) for tool in recorder.bodies("tool_completed")]
    assert told == [("slow", False, "OSError: no disk"), ("slow", False, "cancelled")]


def test_a_lookup_tells_layers_counts_titles_scores_supplement_and_truncation() -> None:
    recorder = ListeningRecorder()

    @record_tool
    def lookup_knowledge(question: str, layer: Layer | None) -> str:
        note_retrieval(
            layer,
            l0_match_count=2,
            l1_match_count=1,
            l0_titles=["Disk", "Net"],
            l1_scores=[0.5],
            has_supplement=True,
            is_truncated=True,
        )
        return "found"

    with recorder.diagnosis("why"):
        lookup_knowledge("disk", None)
        lookup_knowledge("disk", Layer.L0)
    both, chosen = recorder.bodies("tool_completed")
    assert (both.retrieval.layer, both.retrieval.l0_match_count, both.retrieval.l1_match_count) == (
        pb.RETRIEVAL_LAYER_L0_L1,
        2,
        1,
    )
    assert chosen.retrieval.layer == pb.RETRIEVAL_LAYER_L0
    assert both.is_truncated
    assert json.loads(both.retrieval.details_json) == {
        "l0_titles": ["Disk", "Net"],
        "l1_scores": [0.5],
        "has_supplement": True,
    }


def test_an_output_of_5_mb_has_a_preview_its_true_length_and_the_flag() -> None:
    recorder, whole = ListeningRecorder(), "ä" * 5_000_000

    @record_tool(max_output=1000)
    def cut_for_it() -> str:
        return whole

    @record_tool
    def cuts_itself() -> str:
        note_output(whole)
        return whole[:1000]

    with recorder.diagnosis("why"):
        assert cut_for_it() == cuts_itself() == whole[:1000]
    for tool in recorder.bodies("tool_completed"):
        assert (tool.output_preview, tool.output_length, tool.is_truncated) == ("ä" * 500, 5_000_000, True)


@pytest.mark.parametrize(
    ("output", "preview"),
    [
        ("a" * 499 + "🦊" + "b", "a" * 499 + "🦊"),
        ("a" * 498 + "\ud83e" + "bc", "a" * 498 + "�" + "b"),
        ("\ud83e\udd8a", "🦊"),
        ("a\0b", "a�b"),
    ],
    ids=["emoji-across-500", "lone-surrogate", "pair-of-surrogates", "nul"],
)
def test_a_preview_is_valid_and_at_most_500_characters(output: str, preview: str) -> None:
    recorder = ListeningRecorder()
    with recorder.diagnosis("why"):
        record_tool(output.__str__)()
    (tool,) = recorder.bodies("tool_completed")
    assert (tool.output_preview, tool.output_length) == (preview, len(output))


def test_strange_arguments_become_json_that_servers_take() -> None:
    recorder = ListeningRecorder()
    deep: list[object] = []
    for _ in range(1000):
        deep = [deep]

    @record_tool
    def tool(**arguments: object) -> None:
        return

    with recorder.diagnosis("why"):
        tool(nan=float("nan"), huge=10**5000, big=2**63, deep=deep, text="x" * 100_000, what={1, 2}, key={"\ud83e": 1})
    (told,) = recorder.bodies("tool_completed")
    value = json.loads(told.input_params_json, parse_constant=pytest.fail)
    assert (value["nan"], value["big"], value["key"]) == ("nan", 2**63, {"�": 1})
    assert len(told.input_params_json.encode()) <= 65_536
    assert value["text"].endswith("[cut]")
