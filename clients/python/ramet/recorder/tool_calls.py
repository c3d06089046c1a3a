"""One tool call while it goes on: what it was given, what it tells of itself, and how it ends."""

import asyncio
import contextvars
import json
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from ramet.recorder.diagnosis import Step
from ramet.recorder.drafts import Kept, set_time
from ramet.recorder.places import Place, here, move_below, move_to
from ramet.recorder.summaries import name as name_of
from ramet.recorder.summaries import plain_json, preview, short
from ramet.recorder.texts import PREVIEW_CHARACTERS, bytes_of, plain_size
from ramet.recorder.values import Layer
from ramet.telemetry.v1 import telemetry_pb2 as pb

__all__ = ["ToolCall", "current_call", "note_output", "note_retrieval"]

_TOOL = 64


class ToolCall:
    """A tool call as a block, for a framework that runs tools itself; for a function there is ``record_tool``.

    ``with ToolCall("lookup", {"query": "disk"}) as call: call.output = lookup("disk")``. An exception that leaves the
    block is recorded as its failure, and raised. An agent that runs within is nested under the step, and a tool that
    ``record_tool`` records under the same name is this call, not another one. Outside every diagnosis it does nothing.
    """

    __slots__ = (
        "_before",
        "_call_before",
        "_clock_ns",
        "_details",
        "_fault",
        "_inputs",
        "_is_truncated",
        "_joins",
        "_key",
        "_name",
        "_noted",
        "_place",
        "_retrieval",
        "_started_ns",
        "output",
    )

    def __init__(self, name: str, inputs: Mapping[str, Any] | None = None, *, step: Step | None = None) -> None:
        """Takes the tool's name, its arguments, and the step that calls it where that is not the current one."""
        self.output: object = None
        """What the tool returned."""
        self._name = name
        self._inputs: Any = inputs or {}
        self._place: Place | None = here() if step is None else Place(step.diagnosis, step)
        self._joins = True
        self._fault: Exception | None = None
        self._noted: tuple[object] | None = None
        self._is_truncated = False
        self._retrieval: tuple[Layer | None, int | None, int | None] | None = None
        self._details: Any = None

    def __enter__(self) -> Self:
        """Begins the call."""
        place = self._place
        if place is None:
            return self
        self._before, self._call_before = here(), _call.get()
        self._key = place.diagnosis.key()
        try:
            # Now: the tool may change what it was given.
            self._inputs = place.diagnosis.recorder.texts.plain(self._inputs, "input_params")
        except Exception as fault:  # noqa: BLE001 - the arguments may be anything; the call is dropped at its end
            self._fault = fault
        move_below(place)
        _call.set(self)
        self._started_ns, self._clock_ns = time.time_ns(), time.perf_counter_ns()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Records the call."""
        place = self._place
        if place is None:
            return
        took_ms = (time.perf_counter_ns() - self._clock_ns) // 1_000_000
        move_to(self._before)
        _call.set(self._call_before)
        place.diagnosis.recorder.record(
            "tool_completed", place.diagnosis.session_id, lambda: self._completed(place, error, took_ms)
        )

    def returned(self, result: Any, max_output: int | None = None) -> Any:
        """Takes what the tool returned; returns it, a text cut to ``max_output`` code points and noted as cut."""
        if max_output is not None and isinstance(result, str) and len(result) > max_output:
            if self._noted is None:
                self._noted = (result,)
            self._is_truncated = True
            result = result[:max_output]
        self.output = result
        return result

    def alone(self) -> Self:
        """Makes this a call that no other one is part of by its name."""
        self._joins = False
        return self

    def _completed(self, place: Place, error: BaseException | None, took_ms: int) -> Kept:
        if self._fault is not None:
            raise self._fault
        texts, inputs, key = place.diagnosis.recorder.texts, self._inputs, self._key
        truncated, retrieval, details = self._is_truncated, self._retrieval, self._details
        name, started_ns = self._name, self._started_ns
        fault = output = None
        length = 0
        if error is not None:
            stopped = isinstance(error, asyncio.CancelledError | KeyboardInterrupt | GeneratorExit)
            fault = ("cancelled", 9) if stopped else texts.error(error)
        if error is None or self._noted is not None:
            whole = _text(self.output if self._noted is None else self._noted[0])
            output, length = texts.head(whole, "output", PREVIEW_CHARACTERS), len(whole)

        def write() -> pb.Event:
            completed = pb.ToolCompleted(
                invocation_key=key,
                step_key=place.step.key if place.step is not None else "",
                tool_name=name_of(name, _TOOL) or "tool",
                input_params_json=plain_json(inputs),
                is_truncated=truncated,
                success=fault is None,
                error_message=short(fault) if fault is not None else "",
                duration_ms=took_ms,
            )
            set_time(completed.started_at, started_ns)
            if output is not None:
                completed.output_preview = preview(output)
                completed.output_length = length
            if retrieval is not None:
                completed.retrieval.CopyFrom(_retrieval(*retrieval))
                if details:
                    completed.retrieval.details_json = plain_json(details)
            return pb.Event(tool_completed=completed)

        size = plain_size(inputs) + (plain_size(details) if details else 0)
        for head in (fault, output):
            if head is not None:
                size += bytes_of(head[0])
        return size, write

    def note(self, output: object, is_truncated: bool) -> None:
        """Takes the whole output."""
        self._noted, self._is_truncated = (output,), is_truncated

    def note_lookup(
        self,
        layer: Layer | None,
        l0: int | None,
        l1: int | None,
        rows: Mapping[str, Sequence[object]],
        has_supplement: bool | None,
    ) -> None:
        """Takes what a knowledge lookup found."""
        self._retrieval = (layer, l0, l1)
        if self._place is not None:
            try:
                # Arrays of numbers are no lists, and have no truth value.
                told: dict[str, Any] = {name: list(row) for name, row in rows.items() if len(row)}
                if has_supplement is not None:
                    told["has_supplement"] = has_supplement
                self._details = self._place.diagnosis.recorder.texts.plain(told, "retrieval")
            except Exception as fault:  # noqa: BLE001 - as for the arguments
                self._fault = fault

    def note_cut(self, is_truncated: bool) -> None:
        """Takes whether what is returned has been cut."""
        self._is_truncated = is_truncated

    def join(self, name: str) -> bool:
        """Tells whether a tool of this name that is called now is this very call; the first one is."""
        joins = self._joins and self._name == name
        self._joins = self._joins and not joins
        return joins


_call: contextvars.ContextVar[ToolCall | None] = contextvars.ContextVar("ramet_tool_call", default=None)


def current_call() -> ToolCall | None:
    """Returns the tool call that the running code belongs to."""
    return _call.get()


def note_output(output: object, *, is_truncated: bool = True) -> None:
    """Says, within a tool, what its whole output is, where what it returns has been cut already."""
    call = _call.get()
    if call is not None:
        call.note(output, is_truncated)


def note_retrieval(
    layer: Layer | None = None,
    *,
    l0_match_count: int | None = None,
    l1_match_count: int | None = None,
    l0_titles: Sequence[str] = (),
    l1_titles: Sequence[str] = (),
    l1_scores: Sequence[float] = (),
    has_supplement: bool | None = None,
    is_truncated: bool | None = None,
) -> None:
    """Says, within a tool, what a knowledge lookup found; outside a recorded tool it does nothing.

    Without ``layer`` it follows from the counts, where they tell.
    """
    call = _call.get()
    if call is None:
        return
    rows = {"l0_titles": l0_titles, "l1_titles": l1_titles, "l1_scores": l1_scores}
    call.note_lookup(layer, l0_match_count, l1_match_count, rows, has_supplement)
    if is_truncated is not None:
        call.note_cut(is_truncated)


def _retrieval(layer: Layer | None, l0: int | None, l1: int | None) -> pb.Retrieval:
    chosen = layer
    if chosen is None and (l0 or l1):
        chosen = Layer.L0_L1 if l0 and l1 else Layer.L0 if l0 else Layer.L1
    return pb.Retrieval(
        layer=chosen.value if chosen is not None else pb.RETRIEVAL_LAYER_UNSPECIFIED,
        l0_match_count=l0,
        l1_match_count=l1,
    )


def _text(output: object) -> str:
    """Returns the whole output as the text that a model would see."""
    if isinstance(output, str):
        return output
    try:
        return json.dumps(output, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        # Not JSON: as it prints.
        return str(output)
