"""How the functions that an application hands over are called, be they plain or asynchronous."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

__all__ = ["call"]


async def call(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Calls a function and returns what it makes; a plain one runs on a thread, within the caller's context.

    On a thread, because it may well ask a model or a network, and must not hold up the event loop meanwhile.
    """
    if _makes_no_wait(function) or _makes_no_wait(type(function).__call__):
        made = function(*args, **kwargs)
    else:
        made = await asyncio.to_thread(_on_thread, function, args, kwargs)
    return await made if inspect.isawaitable(made) else made


def _makes_no_wait(function: object) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def _on_thread(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    try:
        return function(*args, **kwargs)
    except StopIteration as error:
        # A future cannot hold one: its waiter would wait forever.
        raise RuntimeError(f"{getattr(function, '__name__', 'a function')} raised StopIteration") from error
