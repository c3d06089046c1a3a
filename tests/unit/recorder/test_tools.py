"""Tool calls, and what a lookup tells. mlflow#24123, langfuse#1631."""

from __future__ import annotations

import asyncio
import contextvars
import json

import pytest

from ramet.recorder import (
    AgentLoggingHook,
    Layer,
    ToolCall,
    current_diagnosis,
    note_output,
    note_retrieval,
    record_tool,
)
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


def test_a_lookup_that_tells_nonsense_breaks_no_tool(caplog: pytest.LogCaptureFixture) -> None:
    recorder = ListeningRecorder()

    @record_tool
    def lookup(count: object, titles: object) -> str:
        note_retrieval(l0_match_count=count, l0_titles=titles)  # type: ignore[arg-type]  # as a careless tool does
        return "found"

    with recorder.diagnosis("why"):
        assert [lookup("two", ["a"]), lookup(2, 5), lookup(2, ["a"])] == ["found"] * 3
    (tool,) = recorder.bodies("tool_completed")
    assert tool.retrieval.l0_match_count == 2
    assert recorder.report().dropped_by_kind == {"tool_completed": 2}


def test_a_framework_opens_tool_calls_itself_and_a_decorated_tool_within_is_the_same_call() -> None:
    recorder, hook = ListeningRecorder(), AgentLoggingHook("a")

    @record_tool(max_output=3)
    def decorated(query: str) -> str:
        note_retrieval(l0_match_count=1)
        return query * 2

    def plain(query: str) -> str:
        return decorated(query)

    with ToolCall("outside", {}) as call:
        call.output = 5
    with recorder.diagnosis("why"):
        step = hook.before_model("x")
        for name, tool in (("decorated", decorated), ("plain", plain)):
            with ToolCall(name, {"query": "abc"}) as call:
                call.output = tool("abc")
        with pytest.raises(OSError, match="disk"), ToolCall("broken", {"a": 1}):
            raise OSError("no disk")
        hook.after_model("y")
    assert step is not None
    tools = recorder.bodies("tool_completed")
    told = [
        (tool.tool_name, tool.output_preview, tool.output_length, tool.is_truncated, tool.error_message)
        for tool in tools
    ]
    assert told == [
        ("decorated", "abcabc", 6, True, ""),
        ("decorated", "abcabc", 6, True, ""),
        ("plain", "abc", 3, False, ""),
        ("broken", "", 0, False, "OSError: no disk"),
    ]
    assert [json.loads(tool.input_params_json) for tool in tools] == [{"query": "abc"}] * 3 + [{"a": 1}]
    assert [tool.HasField("retrieval") for tool in tools] == [True, True, False, False]
    assert {tool.step_key for tool in tools} == {step.key}


async def test_a_framework_names_the_step_where_the_context_is_another_one() -> None:
    recorder = ListeningRecorder()
    inner = AgentLoggingHook("inner")

    async def later() -> None:
        assert current_diagnosis() is None
        with ToolCall("t", {}, step=step) as call:
            inner.before_model("x")
            inner.after_model("y")
            call.output = "z"
        assert current_diagnosis() is None

    with recorder.diagnosis("why") as diagnosis:
        step = diagnosis.begin_step("outer", "x")
        await contextvars.Context().run(asyncio.create_task, later())
        step.end(output="y")
    events = recorder.told()
    (tool,) = [event.tool_completed for event in events if event.HasField("tool_completed")]
    parents = {event.step_completed.agent_name: event.step_completed.parent_step_key for event in events}
    assert (tool.step_key, parents["inner"], parents["outer"]) == (step.key, step.key, "")


def test_a_tool_that_changes_its_arguments_is_recorded_with_what_it_was_given() -> None:
    recorder = ListeningRecorder()

    @record_tool
    def tool(items: list[str]) -> str:
        items.clear()
        return ""

    with recorder.diagnosis("why"):
        tool(["a"])
    (told,) = recorder.bodies("tool_completed")
    assert json.loads(told.input_params_json) == {"items": ["a"]}
