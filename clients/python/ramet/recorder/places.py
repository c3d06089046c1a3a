"""Where in which diagnosis the running code is: it travels by contextvars, so through tasks by itself."""

import contextvars
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, ParamSpec, TypeVar

if TYPE_CHECKING:
    from ramet.recorder.diagnosis import Diagnosis, Step

__all__ = ["Place", "carry", "current_diagnosis", "current_step", "here", "move_below", "move_to", "nested"]

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Place(NamedTuple):
    """A diagnosis, the step that is current in it, and the step below which new ones are nested at least."""

    diagnosis: "Diagnosis"
    step: "Step | None" = None
    base: "Step | None" = None


_place: contextvars.ContextVar[Place | None] = contextvars.ContextVar("ramet_place", default=None)


def here() -> Place | None:
    """Returns the current place; None outside every diagnosis."""
    return _place.get()


def current_diagnosis() -> "Diagnosis | None":
    """Returns the current diagnosis; None outside every one."""
    place = _place.get()
    return place.diagnosis if place else None


def current_step() -> "Step | None":
    """Returns the current step: the last one that an agent began here."""
    place = _place.get()
    return place.step if place else None


def move_to(place: Place | None) -> None:
    """Makes a place the current one, for the rest of this context."""
    _place.set(place)


def move_below(place: Place | None) -> None:
    """Nests the steps that begin from here on under the step that is current in a place."""
    if place is not None:
        _place.set(Place(place.diagnosis, place.step, place.step))


@contextmanager
def nested() -> Iterator[None]:
    """Nests steps within the block under the current step, and comes back to it after the block."""
    place = _place.get()
    move_below(place)
    try:
        yield
    finally:
        _place.set(place)


def carry(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Binds a function to the current diagnosis and step, for a thread: ``pool.submit(carry(work), item)``.

    Tasks of asyncio and ``asyncio.to_thread`` need no help. Every call runs in a copy of its own of the context in
    which ``carry`` was called, so that one function may run on many threads at once.
    """
    context = contextvars.copy_context()

    @functools.wraps(function)
    def carried(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        return context.copy().run(function, *args, **kwargs)

    return carried
