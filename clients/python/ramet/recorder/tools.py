"""Tool calls: a decorator records each, and within it a tool tells what only it knows."""

import asyncio
import contextvars
import functools
import inspect
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from ramet.recorder.drafts import Kept, set_time
from ramet.recorder.places import Place, here, move_below, move_to
from ramet.recorder.summaries import name as name_of
from ramet.recorder.summaries import plain_json, preview, short
from ramet.recorder.texts import PREVIEW_CHARACTERS, bytes_of, plain_size
from ramet.recorder.values import Layer
from ramet.telemetry.v1 import telemetry_pb2 as pb

__all__ = ["note_output", "note_retrieval", "record_tool"]

_F = TypeVar("_F", bound=Callable[..., Any])

_TOOL = 64


@dataclass(slots=True)
class _Call:
    """A tool call that is going on."""

    place: Place
    name: str
    inputs: Mapping[str, Any]
    key: str
    started_ns: int
    clock_ns: int
    output: object = None
    noted: bool = False
    truncated: bool = False
    retrieval: pb.Retrieval | None = None
    details: Mapping[str, Any] | None = None


_call: contextvars.ContextVar[_Call | None] = contextvars.ContextVar("ramet_tool_call", default=None)


@overload
def record_tool(function: _F, /) -> _F: ...
@overload
def record_tool(*, name: str = ..., max_output: int | None = ...) -> Callable[[_F], _F]: ...
def record_tool(function: Any = None, /, *, name: str = "", max_output: int | None = None) -> Any:
    """Records every call of a tool, of a plain or an asynchronous function, into the current diagnosis and step.

    Kept are the arguments, the first 500 code points of the output and its whole length, the time it took, and whether
    it worked. What the tool raises is raised. With ``max_output`` a text that it returns is cut to so many code points
    for the model, and recorded as truncated with its true length. An agent that runs within is nested under the step.
    """
    if function is None:
        return functools.partial(_recorded, name=name, max_output=max_output)
    return _recorded(function, name=name, max_output=max_output)


def note_output(output: object, *, is_truncated: bool = True) -> None:
    """Says, within a tool, what its whole output is, where what it returns has been cut already."""
    call = _call.get()
    if call is not None:
        call.output, call.noted, call.truncated = output, True, is_truncated


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
    chosen = layer or _layer(l0_match_count, l1_match_count)
    call.retrieval = pb.Retrieval(
        layer=chosen.value if chosen is not None else pb.RETRIEVAL_LAYER_UNSPECIFIED,
        l0_match_count=l0_match_count,
        l1_match_count=l1_match_count,
    )
    told = {"l0_titles": l0_titles, "l1_titles": l1_titles, "l1_scores": l1_scores}
    call.details = {name: list(value) for name, value in told.items() if len(value)}
    if has_supplement is not None:
        call.details = {**call.details, "has_supplement": has_supplement}
    if is_truncated is not None:
        call.truncated = is_truncated


def _layer(l0: int | None, l1: int | None) -> Layer | None:
    if l0 and l1:
        return Layer.L0_L1
    if l0:
        return Layer.L0
    return Layer.L1 if l1 else None


def _recorded(function: Any, *, name: str, max_output: int | None) -> Any:
    names = _names(function)
    told_name = name or getattr(function, "__name__", "tool")

    def begin(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call | None:
        place = here()
        if place is None:
            return None
        return _Call(
            place,
            told_name,
            _inputs(names, args, kwargs),
            place.diagnosis.key(),
            time.time_ns(),
            time.perf_counter_ns(),
        )

    def returned(call: _Call, result: Any) -> Any:
        whole, cut = result, max_output is not None and isinstance(result, str) and len(result) > max_output
        if cut:
            result = result[:max_output]
        if not call.noted:
            call.output = whole
        call.truncated |= cut
        _end(call, None)
        return result

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def recorded_async(*args: Any, **kwargs: Any) -> Any:
            call = begin(args, kwargs)
            if call is None:
                return await function(*args, **kwargs)
            before = _call.get()
            _call.set(call)
            move_below(call.place)
            try:
                result = await function(*args, **kwargs)
            except BaseException as error:
                _end(call, error)
                raise
            finally:
                move_to(call.place)
                _call.set(before)
            return returned(call, result)

        return recorded_async

    @functools.wraps(function)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        call = begin(args, kwargs)
        if call is None:
            return function(*args, **kwargs)
        before = _call.get()
        _call.set(call)
        move_below(call.place)
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            _end(call, error)
            raise
        finally:
            move_to(call.place)
            _call.set(before)
        return returned(call, result)

    return recorded


def _names(function: Any) -> tuple[str, ...]:
    """Returns the names of the arguments that may be given by their position."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        # Some functions that are written in C tell none.
        return ()
    return tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))


def _inputs(names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    named = dict(zip(names, args, strict=False))
    named.pop("self", None)
    if len(args) > len(names):
        named["args"] = args[len(names) :]
    named.update(kwargs)
    return named


def _end(call: _Call, error: BaseException | None) -> None:
    diagnosis = call.place.diagnosis
    took_ms = (time.perf_counter_ns() - call.clock_ns) // 1_000_000
    diagnosis.recorder.record("tool_completed", diagnosis.session_id, lambda: _completed(call, error, took_ms))


def _completed(call: _Call, error: BaseException | None, took_ms: int) -> Kept:
    place, texts, truncated = call.place, call.place.diagnosis.recorder.texts, call.truncated
    inputs = texts.plain(call.inputs, "input_params")
    retrieval, details = call.retrieval, texts.plain(call.details, "retrieval") if call.details else None
    fault = output = None
    if error is not None:
        stopped = isinstance(error, asyncio.CancelledError | KeyboardInterrupt | GeneratorExit)
        fault = ("cancelled", 9) if stopped else texts.error(error)
    if error is None or call.noted:
        whole = _text(call.output)
        output, length = texts.head(whole, "output", PREVIEW_CHARACTERS), len(whole)

    def write() -> pb.Event:
        completed = pb.ToolCompleted(
            invocation_key=call.key,
            step_key=place.step.key if place.step is not None else "",
            tool_name=name_of(call.name, _TOOL) or "tool",
            input_params_json=plain_json(inputs),
            is_truncated=truncated,
            success=fault is None,
            error_message=short(fault) if fault is not None else "",
            duration_ms=took_ms,
        )
        set_time(completed.started_at, call.started_ns)
        if output is not None:
            completed.output_preview = preview(output)
            completed.output_length = length
        if retrieval is not None:
            completed.retrieval.CopyFrom(retrieval)
            if details:
                completed.retrieval.details_json = plain_json(details)
        return pb.Event(tool_completed=completed)

    size = plain_size(inputs) + (plain_size(details) if details else 0)
    for head in (fault, output):
        if head is not None:
            size += bytes_of(head[0])
    return size, write


def _text(output: object) -> str:
    """Returns the whole output as the text that a model would see."""
    if isinstance(output, str):
        return output
    try:
        return json.dumps(output, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        # Not JSON: as it prints.
        return str(output)
