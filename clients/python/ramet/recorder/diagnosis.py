"""A diagnosis as it goes on, and its steps: what agents say becomes events here."""

import asyncio
import itertools
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ramet.recorder.drafts import Kept, set_time
from ramet.recorder.evaluation import QUESTION, found_evaluation
from ramet.recorder.places import Place, here, move_to
from ramet.recorder.summaries import input_json, limited, name, output_json, short
from ramet.recorder.texts import Input, bytes_of, call_size
from ramet.recorder.values import Status, Usage
from ramet.telemetry.v1 import telemetry_pb2 as pb

if TYPE_CHECKING:
    from ramet.recorder.recorder import Recorder

__all__ = ["Diagnosis", "Step"]

_AGENT, _NAME = 32, 256


def new_key() -> str:
    """Makes a random id."""
    return os.urandom(16).hex()


def status_of(error: BaseException | None) -> Status:
    """Tells how a block ended that raised this: stopped from outside is not failed."""
    if error is None:
        return Status.SUCCESS
    stopped = isinstance(error, asyncio.CancelledError) or not isinstance(error, Exception)
    return Status.CANCELLED if stopped else Status.FAILED


class Diagnosis(AbstractContextManager["Diagnosis"]):
    """One run of one or more agents on one question, made by :meth:`Recorder.diagnosis`; use it with ``with``.

    Leaving the block ends it: SUCCESS, FAILED by an exception, CANCELLED where the exception stopped it from outside
    (as asyncio.CancelledError). Steps that are open then end with it.
    """

    def __init__(
        self, recorder: "Recorder", query: str, agent_flow: str, conversation_id: str | None, session_id: str | None
    ) -> None:
        self.session_id = session_id or new_key()
        """The id under which the diagnosis is found."""
        self.recorder = recorder
        """Whose it is."""
        self._query = query
        self._agent_flow = agent_flow
        self._conversation_id = conversation_id
        self._indexes = itertools.count()
        self._keys = f"{new_key()[:16]}."
        self._pid = os.getpid()
        self._numbers = itertools.count()
        self._open: dict[str, Step] = {}
        self._status: Status | None = None
        self._error: BaseException | str = ""
        self._before: Place | None = None

    def __enter__(self) -> Self:
        """Starts the diagnosis and makes it the current one."""
        self._before = here()
        move_to(Place(self))
        self.recorder.record("diagnosis_started", self.session_id, self._started)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the diagnosis."""
        move_to(self._before)
        status = self._status or status_of(error)
        told = self._error or (error if status is Status.FAILED else None) or ""
        for step in list(self._open.values()):
            step.end(Status.CANCELLED if status is Status.SUCCESS else status, error=told)
        self.recorder.record("diagnosis_completed", self.session_id, lambda: self._completed(status, told))

    async def __aenter__(self) -> Self:
        """Starts the diagnosis and makes it the current one of this task."""
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the diagnosis."""
        self.__exit__(kind, error, trace)

    def fail(self, error: BaseException | str) -> None:
        """Says that it failed, though its block is left without an exception."""
        self._status, self._error = Status.FAILED, error

    def cancel(self) -> None:
        """Says that it was stopped from outside."""
        self._status = Status.CANCELLED

    def feedback(self, source: str, *, useful: bool, comment: str = "") -> None:
        """Records what a source, such as ``user``, says of this diagnosis."""
        self.recorder.feedback(self.session_id, source, useful=useful, comment=comment)

    def self_evaluation(
        self,
        confidence: int | None = None,
        *,
        reasoning: str = "",
        evidence_count: int | None = None,
        tools_proposed: int | None = None,
        tools_accepted: int | None = None,
    ) -> None:
        """Records what the model says of its conclusion: its confidence, 0 to 100, and why. None: it does not tell."""
        self.recorder.self_evaluation(
            self.session_id,
            confidence,
            reasoning=reasoning,
            evidence_count=evidence_count,
            tools_proposed=tools_proposed,
            tools_accepted=tools_accepted,
        )

    def self_evaluation_in(self, answer: str) -> bool:
        """Records the self-evaluation that came with the answer, as JSON with a ``confidence``; False: none came."""
        fields = found_evaluation(answer)
        if fields is not None:
            self.self_evaluation(**fields)
        return fields is not None

    def evaluate(self, ask: Callable[[str], str]) -> bool:
        """Asks the model for its self-evaluation in a second call and records it; False: its answer held none.

        ``ask`` takes the question and returns the model's answer; what it raises is raised.
        """
        return self.self_evaluation_in(ask(QUESTION))

    async def evaluate_async(self, ask: Callable[[str], Awaitable[str]]) -> bool:
        """Does what :meth:`evaluate` does, with an asynchronous model."""
        return self.self_evaluation_in(await ask(QUESTION))

    def begin_step(
        self, agent_name: str, messages: object, *, model: str = "", provider: str = "", parent: "Step | None" = None
    ) -> "Step":
        """Begins a step; :class:`AgentLoggingHook` finds the parent and makes the step current."""
        step = Step(self, agent_name, next(self._indexes), parent, model, provider)
        self._open[step.key] = step
        step.begin(messages)
        return step

    def key(self) -> str:
        """Makes an id that is unique within the diagnosis, in whichever process it is recorded."""
        if self._pid != os.getpid():
            self._keys, self._pid = f"{new_key()[:16]}.", os.getpid()
        return f"{self._keys}{next(self._numbers)}"

    def ended(self, step: "Step") -> None:
        """Forgets a step that has ended."""
        self._open.pop(step.key, None)

    def _started(self) -> Kept:
        query = self.recorder.texts.limited(self._query, "query")
        return bytes_of(query[0]), lambda: pb.Event(
            diagnosis_started=pb.DiagnosisStarted(
                query=limited(query),
                agent_flow=name(self._agent_flow, _AGENT),
                conversation_id=self._conversation_id or "",
            )
        )

    def _completed(self, status: Status, error: BaseException | str) -> Kept:
        told = self.recorder.texts.error(error) if error else ("", 0)
        return bytes_of(told[0]), lambda: pb.Event(
            diagnosis_completed=pb.DiagnosisCompleted(status=status.value, error_message=short(told))
        )


class Step:
    """One call of a model by one agent."""

    def __init__(
        self, diagnosis: Diagnosis, agent_name: str, index: int, parent: "Step | None", model: str, provider: str
    ) -> None:
        self.diagnosis = diagnosis
        self.key = diagnosis.key()
        """Its id within the diagnosis."""
        self.agent_name = agent_name
        """Whose it is."""
        self.parent = parent
        """The step that it runs under; None: none."""
        self.usage: Usage | None = None
        """What the model call took, once known; set by :class:`TokenTrackingModel`."""
        self.model = model
        """The model's name, where known."""
        self.provider = provider
        """Who serves the model, where known."""
        self.over = False
        """Whether it has ended."""
        self._index = index
        self._input: Input | None = None
        self._input_json = ""
        self._started_ns = 0
        self._clock_ns = 0

    def begin(self, messages: object) -> None:
        """Records the start."""
        self._started_ns, self._clock_ns = time.time_ns(), time.perf_counter_ns()
        self.diagnosis.recorder.record("step_started", self.diagnosis.session_id, lambda: self._begun(messages))

    def end(
        self,
        status: Status = Status.SUCCESS,
        *,
        output: object = None,
        tool_calls: Sequence[object] = (),
        thought: str = "",
        usage: Usage | None = None,
        error: BaseException | str = "",
    ) -> None:
        """Records the end; a second end changes nothing."""
        if self.over:
            return
        self.over = True
        self.diagnosis.ended(self)
        took_ms = (time.perf_counter_ns() - self._clock_ns) // 1_000_000
        self.diagnosis.recorder.record(
            "step_completed",
            self.diagnosis.session_id,
            lambda: self._ended(status, output, tool_calls, thought, usage or self.usage, error, took_ms),
        )

    def _begun(self, messages: object) -> Kept:
        told = self._input = None if messages is None else self.diagnosis.recorder.texts.messages(messages)
        # These may be found out while the model is called: the start says what is known now.
        model, provider = self.model, self.provider

        def write() -> pb.Event:
            return pb.Event(step_started=pb.StepStarted(**self._same(model, provider)))

        return told.size if told is not None else 0, write

    def _ended(
        self,
        status: Status,
        output: object,
        tool_calls: Sequence[object],
        thought: str,
        usage: Usage | None,
        error: BaseException | str,
        took_ms: int,
    ) -> Kept:
        texts = self.diagnosis.recorder.texts
        said = texts.text(output, "model_output") if output is not None or tool_calls else None
        calls, count = (texts.calls(tool_calls), len(tool_calls)) if tool_calls else ((), 0)
        thinking = texts.limited(thought, "thought") if thought else None
        fault = texts.error(error) if error else None
        model, provider = self.model, self.provider

        def write() -> pb.Event:
            completed = pb.StepCompleted(
                **self._same(model, provider),
                model_output_json=output_json(said, calls, count) if said is not None else "",
                thought=limited(thinking) if thinking is not None else "",
                has_tool_call=count > 0,
                status=status.value,
                error_message=short(fault) if fault is not None else "",
                duration_ms=took_ms,
            )
            set_time(completed.started_at, self._started_ns)
            if usage is not None:
                completed.usage.CopyFrom(usage_message(usage))
            return pb.Event(step_completed=completed)

        size = self._input.size if self._input is not None else 0
        for head in (said, thinking, fault):
            if head is not None:
                size += bytes_of(head[0])
        return size + sum(map(call_size, calls)), write

    def _same(self, model: str, provider: str) -> dict[str, Any]:
        """Writes what the start and the end of a step have in common; it runs on the sender's thread."""
        if self._input is not None and not self._input_json:
            self._input_json = input_json(self._input)
        return {
            "step_key": self.key,
            "parent_step_key": self.parent.key if self.parent is not None else "",
            "step_index": self._index,
            "agent_name": name(self.agent_name, _AGENT) or "agent",
            "model_input_json": self._input_json,
            "model": name(model, _NAME),
            "provider": name(provider, _NAME),
        }


def usage_message(usage: Usage) -> pb.Usage:
    """Writes tokens and cost; what is unknown stays absent."""
    return pb.Usage(
        input_tokens=usage.input_tokens,
        cached_tokens=usage.cached_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.total_tokens,
        cost_micros=usage.cost_micros,
    )
