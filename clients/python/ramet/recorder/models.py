"""Calls of models: how many tokens each took, of plain and of streamed answers."""

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Mapping
from typing import Any

from ramet.recorder.diagnosis import Step, status_of
from ramet.recorder.places import current_step
from ramet.recorder.values import Status, Usage

__all__ = ["TokenTrackingModel", "usage_of"]

_FIELDS = (
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)
_DETAILS = ("prompt_tokens_details", "input_tokens_details")


class TokenTrackingModel:
    """Stands before a function that calls a model, and leaves the tokens it took with the current step.

    The function may be plain or asynchronous, and return an answer or stream its parts; what it returns is passed on
    as it is, a part at a time. Usage is understood as OpenAI tells it (chat completions and responses; a stream tells
    it in its last part where asked to) and as Anthropic does (whole messages and the events of a stream). A step whose
    call fails ends as FAILED, one whose call or stream is cancelled or left early as CANCELLED.
    """

    def __init__(
        self,
        call: Callable[..., Any],
        *,
        model: str = "",
        provider: str = "",
        cost_micros: Callable[[str, Usage], int | None] | None = None,
    ) -> None:
        """Takes the function, what is known of the model, and what a call costs, in millionths of a US dollar."""
        self._call = call
        self._model = model
        self._provider = provider
        self._cost_micros = cost_micros

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the model; returns what it returns."""
        step = current_step()
        if step is not None and step.over:
            # A call that no step was begun for belongs to none.
            step = None
        tally = _Tally(self, step)
        with tally:
            answer = self._call(*args, **kwargs)
        return self._followed(answer, tally)

    def _followed(self, answer: Any, tally: "_Tally") -> Any:
        if tally.step is None:
            return answer
        if inspect.isawaitable(answer) and not hasattr(answer, "__aiter__"):
            return self._awaited(answer, tally)
        if hasattr(answer, "__aiter__"):
            return _TrackedAsyncStream(answer, tally)
        if isinstance(answer, Iterator) or (hasattr(answer, "__iter__") and _streams(answer)):
            return _TrackedStream(answer, tally)
        tally.add(answer)
        tally.settle()
        return answer

    async def _awaited(self, answer: Any, tally: "_Tally") -> Any:
        with tally:
            answer = await answer
        return self._followed(answer, tally)

    def told(self, step: Step, usage: Usage | None, model: str) -> None:
        """Leaves what is known of a call with its step."""
        step.model = step.model or model or self._model
        step.provider = step.provider or self._provider
        if usage is None:
            return
        if self._cost_micros is not None:
            usage = Usage(
                usage.input_tokens,
                usage.cached_tokens,
                usage.output_tokens,
                usage.total_tokens,
                self._cost_micros(step.model, usage),
            )
        step.usage = usage


def usage_of(answer: object) -> Usage | None:
    """Returns the tokens that an answer of OpenAI's or Anthropic's shape tells; None: it tells none."""
    raw = _Raw()
    raw.add(answer)
    return raw.usage()


class _Raw:
    """The numbers of one answer, as its provider names them; later parts of a stream replace earlier ones."""

    def __init__(self) -> None:
        self.model = ""
        self._numbers: dict[str, int] = {}
        self._details: set[str] = set()

    def add(self, part: object) -> None:
        """Takes an answer, or a part of one."""
        # Anthropic's first event holds a message, OpenAI's last one a response.
        for holder in (part, _get(part, "message"), _get(part, "response")):
            if holder is None or isinstance(holder, str):
                continue
            model = _get(holder, "model")
            if isinstance(model, str) and model:
                self.model = model
            usage = _get(holder, "usage")
            if usage is not None:
                self._read(usage)

    def _read(self, usage: object) -> None:
        for name in _FIELDS:
            self._put(name, _get(usage, name))
        for name in _DETAILS:
            details = _get(usage, name)
            if details is not None:
                self._details.add(name)
                self._put("cached_tokens", _get(details, "cached_tokens"))

    def _put(self, name: str, value: object) -> None:
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            self._numbers[name] = value

    def usage(self) -> Usage | None:
        """Returns what is known so far, cached tokens always as a part of the input."""
        found = self._numbers
        if not found:
            return None
        read, made = found.get("cache_read_input_tokens"), found.get("cache_creation_input_tokens")
        inputs = found.get("prompt_tokens", found.get("input_tokens"))
        cached = found.get("cached_tokens", read)
        if inputs is not None and "prompt_tokens" not in found and not self._details:
            # Anthropic counts what it read from and wrote to its cache beside the input.
            inputs += (read or 0) + (made or 0)
        outputs = found.get("completion_tokens", found.get("output_tokens"))
        return Usage(inputs, cached, outputs, found.get("total_tokens"))


class _Tally(_Raw):
    """What one call took, and the step that it is for. As a block it notices how the call fails."""

    def __init__(self, model: TokenTrackingModel, step: Step | None) -> None:
        super().__init__()
        self.step = step
        self._tracking = model

    def add(self, part: object) -> None:
        """Takes a part; whatever it is, it does not break the call."""
        try:
            super().add(part)
        except Exception:  # noqa: BLE001 - the part is of a foreign library, whose attributes may do anything
            return

    def settle(self) -> None:
        """Leaves what is known with the step."""
        if self.step is not None:
            try:
                self._tracking.told(self.step, self.usage(), self.model)
            except Exception:  # noqa: BLE001 - the application's cost function must not break its model's call
                return

    def leave(self) -> None:
        """Ends the step as cancelled: nobody wants the rest of the stream."""
        self.settle()
        if self.step is not None:
            self.step.end(Status.CANCELLED)

    def __enter__(self) -> None:
        """Begins to watch."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Ends the step where the call failed or was cancelled."""
        if error is not None and self.step is not None:
            self.settle()
            status = status_of(error)
            self.step.end(status, error=error if status is Status.FAILED else "")


class _Tracked:
    """A stream of parts; everything but reading it is the stream's own."""

    def __init__(self, stream: Any, tally: _Tally) -> None:
        self._stream = stream
        self._tally = tally
        self._parts = self._read()

    def _read(self) -> Any:
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _TrackedStream(_Tracked, Iterator[Any]):
    _parts: Generator[Any, None, None]

    def _read(self) -> Generator[Any, None, None]:
        with self._tally:
            for part in self._stream:
                self._tally.add(part)
                yield part
        self._tally.settle()

    def __next__(self) -> Any:
        return next(self._parts)

    def close(self) -> None:
        """Leaves the stream."""
        self._leave()
        _close = getattr(self._stream, "close", None)
        if _close is not None:
            _close()

    def _leave(self) -> None:
        if inspect.getgeneratorstate(self._parts) != inspect.GEN_CLOSED:
            self._parts.close()
            self._tally.leave()

    def __enter__(self) -> "_TrackedStream":
        enter = getattr(self._stream, "__enter__", None)
        if enter is not None:
            enter()
        return self

    def __exit__(self, *error: Any) -> Any:
        self._leave()
        leave = getattr(self._stream, "__exit__", None)
        return leave(*error) if leave is not None else None

    def __del__(self) -> None:
        self._leave()


class _TrackedAsyncStream(_Tracked, AsyncIterator[Any]):
    _parts: AsyncGenerator[Any, None]

    async def _read(self) -> AsyncGenerator[Any, None]:
        with self._tally:
            async for part in self._stream:
                self._tally.add(part)
                yield part
        self._tally.settle()
        self._done = True

    _done = False

    async def __anext__(self) -> Any:
        return await anext(self._parts)

    async def aclose(self) -> None:
        """Leaves the stream."""
        await self._leave()
        close = getattr(self._stream, "aclose", None) or getattr(self._stream, "close", None)
        if close is not None:
            closing = close()
            if inspect.isawaitable(closing):
                await closing

    async def _leave(self) -> None:
        await self._parts.aclose()
        if not self._done:
            self._tally.leave()

    async def __aenter__(self) -> "_TrackedAsyncStream":
        enter = getattr(self._stream, "__aenter__", None)
        if enter is not None:
            await enter()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        await self._leave()
        leave = getattr(self._stream, "__aexit__", None)
        return await leave(*error) if leave is not None else None


def _streams(answer: object) -> bool:
    """Tells a stream from an answer that happens to be iterable, as a dict, a text or a model of pydantic."""
    return type(answer).__name__.endswith("Stream")


def _get(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
