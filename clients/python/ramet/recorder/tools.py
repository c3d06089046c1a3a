"""Functions that are tools: a decorator records each of their calls."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, overload

from ramet.recorder.places import here
from ramet.recorder.tool_calls import ToolCall, current_call

__all__ = ["record_tool"]

_F = TypeVar("_F", bound=Callable[..., Any])


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


def _recorded(function: Any, *, name: str, max_output: int | None) -> Any:
    names = _names(function)
    told_name = name or getattr(function, "__name__", "tool")

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def recorded_async(*args: Any, **kwargs: Any) -> Any:
            if here() is None:
                return await function(*args, **kwargs)
            outer = current_call()
            if outer is not None and outer.join(told_name):
                return outer.returned(await function(*args, **kwargs), max_output)
            with ToolCall(told_name, _inputs(names, args, kwargs)).alone() as call:
                return call.returned(await function(*args, **kwargs), max_output)

        return recorded_async

    @functools.wraps(function)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        if here() is None:
            return function(*args, **kwargs)
        outer = current_call()
        if outer is not None and outer.join(told_name):
            return outer.returned(function(*args, **kwargs), max_output)
        with ToolCall(told_name, _inputs(names, args, kwargs)).alone() as call:
            return call.returned(function(*args, **kwargs), max_output)

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
    named = dict(zip(names, args, strict=False)) if args else {}
    if "self" in named:
        del named["self"]
    if len(args) > len(names):
        named["args"] = args[len(names) :]
    return named | kwargs if kwargs else named
