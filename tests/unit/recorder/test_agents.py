"""Diagnoses, steps and agents within each other. adk-python#5722, #6559, langfuse#15372."""

from __future__ import annotations

import asyncio
import json
import logging
from concurrent.futures import ThreadPoolExecutor

import pytest

from ramet.recorder import AgentLoggingHook, Status, TokenTrackingModel, carry, current_diagnosis, record_tool
from ramet.telemetry.v1 import telemetry_pb2 as pb
from tests.unit.recorder.listening import ListeningRecorder


def turn(name: str) -> None:
    """Takes one step of an agent."""
    hook = AgentLoggingHook(name)
    hook.before_model([{"role": "user", "content": name}])
    hook.after_model(f"{name} says")


def family(recorder: ListeningRecorder) -> dict[str, str]:
    """Tells of each step, by its agent, whose step it is under."""
    steps = recorder.bodies("step_completed")
    names = {step.step_key: step.agent_name for step in steps}
    return {step.agent_name: names.get(step.parent_step_key, "") for step in steps}


def test_a_diagnosis_starts_and_ends_as_its_block_does() -> None:
    recorder = ListeningRecorder()
    with recorder.diagnosis("why", agent_flow="CHAT", conversation_id="c", session_id="d") as diagnosis:
        assert current_diagnosis() is diagnosis
    assert current_diagnosis() is None
    with pytest.raises(ValueError, match="bad"), recorder.diagnosis("why"):
        raise ValueError("bad")
    with pytest.raises(asyncio.CancelledError), recorder.diagnosis("why"):
        raise asyncio.CancelledError
    with recorder.diagnosis("why") as diagnosis:
        diagnosis.fail("no answer")
    events = recorder.told()
    assert events[0].session_id == "d"
    assert events[0].diagnosis_started == pb.DiagnosisStarted(query="why", agent_flow="CHAT", conversation_id="c")
    ends = [event.diagnosis_completed for event in events if event.HasField("diagnosis_completed")]
    assert [(end.status, end.error_message) for end in ends] == [
        (pb.RUN_STATUS_SUCCESS, ""),
        (pb.RUN_STATUS_FAILED, "ValueError: bad"),
        (pb.RUN_STATUS_CANCELLED, ""),
        (pb.RUN_STATUS_FAILED, "no answer"),
    ]
    assert len({event.event_id for event in events}) == len(events)


def test_steps_are_numbered_over_all_agents_and_say_all_at_their_end() -> None:
    recorder = ListeningRecorder()
    hook = AgentLoggingHook("planner", model="m", provider="p")
    with recorder.diagnosis("why"):
        step = hook.before_model([{"role": "user", "content": "hi"}])
        hook.after_model("ho", tool_calls=[{"function": {"name": "f", "arguments": '{"a": 1}'}}], thought="hm")
        turn("executor")
    assert step is not None
    first, second = recorder.bodies("step_completed")
    assert (first.step_index, second.step_index) == (0, 1)
    assert (first.model, first.provider, first.thought, first.has_tool_call) == ("m", "p", "hm", True)
    assert json.loads(first.model_input_json) == [{"role": "user", "content": "hi"}]
    assert json.loads(first.model_output_json) == {
        "text": "ho",
        "tool_calls": [{"name": "f", "arguments": '{"a": 1}'}],
    }
    assert first.HasField("started_at")
    assert not first.HasField("usage")


def test_outside_a_diagnosis_nothing_is_recorded() -> None:
    turn("planner")
    assert record_tool(lambda: 5)() == 5
    assert TokenTrackingModel(lambda: {"usage": {"input_tokens": 1}})() == {"usage": {"input_tokens": 1}}


async def test_three_sub_agents_in_parallel_have_their_supervisor_as_parent() -> None:
    recorder = ListeningRecorder()
    supervisor = AgentLoggingHook("supervisor")

    async def sub_agent(name: str) -> None:
        for _ in range(2):
            hook = AgentLoggingHook(name)
            hook.before_model(name)
            await asyncio.sleep(0)
            hook.after_model(name)

    async with recorder.diagnosis("why"):
        supervisor.before_model("why")
        supervisor.after_model("ask three")
        await asyncio.gather(*(sub_agent(name) for name in ("a", "b", "c")))
        supervisor.before_model("so")
        supervisor.after_model("so")
    assert family(recorder) == {"supervisor": "", "a": "supervisor", "b": "supervisor", "c": "supervisor"}


def test_sub_agents_as_tools_and_as_blocks_nest_and_come_back() -> None:
    recorder = ListeningRecorder()

    @record_tool
    def research(topic: str) -> str:
        turn("researcher")
        turn("critic")
        return topic

    with recorder.diagnosis("why"):
        turn("supervisor")
        research("disks")
        for name in ("planner", "executor"):
            with AgentLoggingHook(name) as hook:
                hook.before_model()
                hook.after_model("done")
        turn("supervisor")
    events = recorder.told()
    steps = [event.step_completed for event in events if event.HasField("step_completed")]
    names = {step.step_key: step.agent_name for step in steps}
    under = [(step.agent_name, names.get(step.parent_step_key, "")) for step in steps]
    assert under == [
        ("supervisor", ""),
        ("researcher", "supervisor"),
        ("critic", "researcher"),
        ("planner", "supervisor"),
        ("executor", "supervisor"),
        ("supervisor", ""),
    ]
    (tool,) = [event.tool_completed for event in events if event.HasField("tool_completed")]
    assert names[tool.step_key] == "supervisor"


def test_threads_get_the_diagnosis_by_carry_and_those_of_asyncio_by_themselves() -> None:
    recorder = ListeningRecorder()
    with recorder.diagnosis("why"), ThreadPoolExecutor(3) as pool:
        turn("supervisor")
        list(pool.map(carry(turn), ["a", "b", "c"]))
        asyncio.run(asyncio.to_thread(turn, "d"))
        turn("supervisor")
    assert family(recorder) == {"supervisor": ""} | dict.fromkeys("abcd", "supervisor")


async def test_a_cancelled_stream_closes_its_step_as_cancelled(caplog: pytest.LogCaptureFixture) -> None:
    recorder, hook = ListeningRecorder(), AgentLoggingHook("a")
    begun = asyncio.Event()

    async def parts() -> object:
        yield {"usage": {"input_tokens": 7}}
        begun.set()
        await asyncio.Event().wait()

    async def agent() -> None:
        async with recorder.diagnosis("why"):
            hook.before_model("why")
            async for _ in TokenTrackingModel(parts)():
                pass

    with caplog.at_level(logging.DEBUG):
        task = asyncio.create_task(agent())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    events = recorder.told()
    assert [event.WhichOneof("body") for event in events[2:]] == ["step_completed", "diagnosis_completed"]
    assert (events[2].step_completed.status, events[2].step_completed.error_message) == (pb.RUN_STATUS_CANCELLED, "")
    assert events[2].step_completed.usage == pb.Usage(input_tokens=7)
    assert events[3].diagnosis_completed.status == pb.RUN_STATUS_CANCELLED
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_a_step_that_was_left_open_ends_with_its_diagnosis() -> None:
    recorder = ListeningRecorder()

    def agent() -> None:
        with recorder.diagnosis("why"):
            AgentLoggingHook("a").before_model("x")
            raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        agent()
    (step,) = recorder.bodies("step_completed")
    assert (step.status, step.error_message) == (pb.RUN_STATUS_FAILED, "ValueError: bad")


def test_an_error_of_the_model_ends_its_step_as_failed() -> None:
    recorder, hook = ListeningRecorder(), AgentLoggingHook("a")
    with recorder.diagnosis("why"):
        hook.before_model("x")
        hook.after_model(error=TimeoutError("too slow"))
        hook.before_model("x")
        hook.after_model(status=Status.CANCELLED)
    steps = recorder.bodies("step_completed")
    assert [(step.status, step.error_message) for step in steps] == [
        (pb.RUN_STATUS_FAILED, "TimeoutError: too slow"),
        (pb.RUN_STATUS_CANCELLED, ""),
    ]


def test_self_evaluations_come_with_the_answer_or_from_a_second_call() -> None:
    recorder = ListeningRecorder()
    asked: list[str] = []

    def model(question: str) -> str:
        asked.append(question)
        return '```json\n{"confidence": 90.4, "reasoning": "seen", "evidence_count": 3, "tools_proposed": 2}\n```'

    with recorder.diagnosis("why") as diagnosis:
        assert diagnosis.self_evaluation_in('It is the disk. {"confidence": 80, "reasoning": "logs"} {"x": 1}')
        assert not diagnosis.self_evaluation_in("It is {the} disk.")
        assert diagnosis.evaluate(model)
        diagnosis.feedback("user", useful=False, comment="no")
    events = recorder.told()
    told = [event.self_evaluation for event in events if event.HasField("self_evaluation")]
    assert told == [
        pb.SelfEvaluation(confidence=80, reasoning="logs"),
        pb.SelfEvaluation(confidence=90, reasoning="seen", evidence_count=3, tools_proposed=2),
    ]
    assert "confidence" in asked[0]
    (said,) = [event.feedback for event in events if event.HasField("feedback")]
    assert said == pb.Feedback(source="user", value=pb.FEEDBACK_VALUE_NOT_USEFUL, comment="no")


def test_a_secret_is_in_no_event() -> None:
    def mask(text: str, where: str) -> str:
        return "***" if where.endswith(".password") else text.replace("s3cret", "***")

    recorder, hook = ListeningRecorder(mask=mask), AgentLoggingHook("a")

    @record_tool
    def log_in(password: str, note: object) -> str:
        return "x" * 497 + "s3cret"

    def agent() -> None:
        with recorder.diagnosis("s3cret") as diagnosis:
            hook.before_model([{"role": "user", "content": ["s3cret", {"type": "text", "text": "s3cret"}]}])
            hook.after_model("s3cret", thought="s3cret", tool_calls=[{"name": "f", "input": {"a": ["s3cret"]}}])
            log_in("hunter2", {"deep": ["s3cret"]})
            diagnosis.self_evaluation(1, reasoning="s3cret")
            diagnosis.feedback("user", useful=True, comment="s3cret")
            hook.before_model("s3cret")
            raise ValueError("s3cret")

    with pytest.raises(ValueError, match="s3cret"):
        agent()
    everything = b"".join(event.SerializeToString() for event in recorder.told())
    assert b"s3cret" not in everything
    assert b"s3c" not in everything
    assert b"hunter2" not in everything
    assert everything.count(b"***") >= 12


def test_a_mask_that_fails_lets_nothing_through() -> None:
    def mask(text: str, where: str) -> str:
        raise ValueError(text)

    recorder = ListeningRecorder(mask=mask)
    with recorder.diagnosis("s3cret"):
        pass
    assert recorder.bodies("diagnosis_started")[0].query == "[masking failed]"


def test_what_cannot_be_recorded_is_dropped_and_breaks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Strange:
        def __str__(self) -> str:
            raise ValueError("s3cret")

    recorder = ListeningRecorder()
    with recorder.diagnosis("why"):
        AgentLoggingHook("a").before_model([Strange()])
    assert recorder.report().dropped_by_kind == {"step_started": 1}
    assert "s3cret" not in caplog.text
