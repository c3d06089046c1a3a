"""What an agent's thread leaves of an event: nobody can change it any more, and faults in it stay its own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ramet.recorder import AgentLoggingHook, Limits, Usage, note_retrieval, record_tool
from tests.unit.recorder.listening import ListeningRecorder


def test_what_the_agent_changes_later_is_not_seen() -> None:
    recorder, hook = ListeningRecorder(), AgentLoggingHook("a")
    call: dict[str, Any] = {"function": {"name": "f", "arguments": {"deep": ["before"]}}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "before"},
        {"role": "user", "content": [{"type": "text", "text": "before"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ]
    argument, output, titles = {"deep": ["before"]}, {"found": ["before"]}, ["before"]

    @record_tool
    def tool(where: object) -> object:
        note_retrieval(l0_match_count=1, l0_titles=titles)
        return output

    with recorder.diagnosis("why"):
        hook.before_model(messages)
        hook.after_model("before", tool_calls=[call])
        tool(argument)
        argument["deep"].append("after")
        output["found"].append("after")
        titles.append("after")
        call["function"]["arguments"]["deep"].append("after")
        call["function"]["name"] = "after"
        messages[1]["content"][0]["text"] = "after"
        messages[0]["content"] = "after"
        messages.append({"role": "user", "content": "after"})
    events = recorder.told()
    assert b"after" not in b"".join(event.SerializeToString() for event in events)
    (tool_event,) = [event.tool_completed for event in events if event.HasField("tool_completed")]
    assert json.loads(tool_event.input_params_json) == {"where": {"deep": ["before"]}}
    assert json.loads(tool_event.output_preview) == {"found": ["before"]}


def test_a_model_that_is_found_out_late_is_no_part_of_the_start() -> None:
    recorder, hook = ListeningRecorder(), AgentLoggingHook("a")
    with recorder.diagnosis("why"):
        step = hook.before_model("x")
        assert step is not None
        step.model = "m"
        hook.after_model("y")
    events = recorder.told()
    assert [events[1].step_started.model, events[2].step_completed.model] == ["", "m"]
    assert events[1].step_started.model_input_json == events[2].step_completed.model_input_json != ""


def test_an_event_that_cannot_be_written_is_dropped_alone(caplog: pytest.LogCaptureFixture) -> None:
    recorder, hook = ListeningRecorder(), AgentLoggingHook("a")
    with recorder.diagnosis("why"):
        for tokens in (1, "s3cret", 2):
            hook.before_model("x")
            hook.after_model("y", usage=Usage(tokens))  # type: ignore[arg-type]  # as a careless caller does
    assert [step.usage.input_tokens for step in recorder.bodies("step_completed")] == [1, 2]
    assert recorder.report().dropped_by_kind == {"step_completed": 1}
    assert "step_completed" in caplog.text
    assert "s3cret" not in caplog.text


def test_an_event_that_is_too_large_is_dropped_alone() -> None:
    recorder = ListeningRecorder(limits=Limits(event_bytes=1000))
    for query in ("short", "x" * 2000, "short"):
        with recorder.diagnosis(query):
            pass
    assert [started.query for started in recorder.bodies("diagnosis_started")] == ["short", "short"]
    assert recorder.report().dropped_by_kind == {"diagnosis_started": 1}


@pytest.mark.parametrize("text", ["x", "ä", "🦊"])
def test_a_queue_holds_no_more_bytes_than_it_may(text: str) -> None:
    limit = 1_000_000
    recorder, hook = ListeningRecorder(limits=Limits(queue_bytes=limit)), AgentLoggingHook("a")
    with recorder.diagnosis("why"):
        while not recorder.report().dropped:
            hook.before_model([{"role": "user", "content": text * 400}] * 20)
            hook.after_model(text * 400, thought=text * 1000)
    written = sum(len(event.SerializeToString()) for event in recorder.told())
    assert limit / 20 < written <= limit
