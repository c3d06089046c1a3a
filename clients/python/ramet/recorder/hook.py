"""What an agent's loop calls before and after each call of its model."""

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from ramet.recorder.diagnosis import Step
from ramet.recorder.places import Place, here, move_to, nested
from ramet.recorder.values import Status, Usage

__all__ = ["AgentLoggingHook"]


class AgentLoggingHook:
    """Records the steps of one agent into whichever diagnosis is current; outside every one it does nothing.

    A step whose agent runs below another's step gets that one as its parent. This is found by itself where a sub-agent
    runs in a tool (:func:`record_tool`), in a task or in a carried thread of its own. Where sub-agents run one after
    the other in the same task, and not as tools, enclose each in ``with hook:``.
    """

    def __init__(self, agent_name: str, *, model: str = "", provider: str = "") -> None:
        """Takes the agent's name, at most 32 characters, and its model and who serves it where they are known."""
        self.agent_name = agent_name
        """The agent."""
        self._model = model
        self._provider = provider
        self._stacks: list[ExitStack] = []

    def before_model(self, messages: object = None, *, model: str = "", provider: str = "") -> Step | None:
        """Begins a step before a model is called; returns it, or None outside every diagnosis.

        Of ``messages``, a list of ``{"role", "content"}`` or of objects like that, a summary is kept.
        """
        place = here()
        if place is None:
            return None
        step = place.diagnosis.begin_step(
            self.agent_name,
            messages,
            model=model or self._model,
            provider=provider or self._provider,
            parent=self._parent(place),
        )
        move_to(Place(place.diagnosis, step, place.base))
        return step

    def after_model(
        self,
        output: object = None,
        *,
        tool_calls: Sequence[object] = (),
        thought: str = "",
        usage: Usage | None = None,
        error: BaseException | str = "",
        status: Status | None = None,
        step: Step | None = None,
    ) -> None:
        """Ends the step after its model has answered; the tools that are then called belong to it.

        ``usage`` need not be given where a :class:`TokenTrackingModel` made the call. ``step`` is needed only where
        this is called in another context than ``before_model``.
        """
        mine = step or self._mine(here())
        if mine is not None:
            end = status or (Status.FAILED if error else Status.SUCCESS)
            mine.end(end, output=output, tool_calls=tool_calls, thought=thought, usage=usage, error=error)

    def _mine(self, place: Place | None) -> Step | None:
        """Finds the agent's step among those that are current here, the innermost first."""
        step = place.step if place is not None else None
        while step is not None and place is not None and step is not place.base:
            if step.agent_name == self.agent_name:
                return step
            step = step.parent
        return None

    def _parent(self, place: Place) -> Step | None:
        mine = self._mine(place)
        return mine.parent if mine is not None else place.step

    def __enter__(self) -> Self:
        """Nests the agent's steps under the step that is current now."""
        stack = ExitStack()
        stack.enter_context(nested())
        self._stacks.append(stack)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Makes the step current again that was so before."""
        self._stacks.pop().close()
