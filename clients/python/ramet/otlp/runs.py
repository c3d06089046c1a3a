"""Which runs of agents a diagnosis consists of, and how they nest."""

from dataclasses import dataclass, field

from ramet.client import AgentStep, ToolInvocation
from ramet.otlp.reading import Chain

__all__ = ["Run", "RunKey", "find_runs"]

RunKey = tuple[str, str]
"""The key of the parent step, empty where there is none, and the agent's name."""


@dataclass
class Run:
    """The steps of one agent below one parent step."""

    key: RunKey
    parent: "Run | None" = None
    """The run whose step started this one; None: the diagnosis did."""
    steps: list[AgentStep] = field(default_factory=list)
    """By step_index."""
    tools: list[ToolInvocation] = field(default_factory=list)
    """Those that its steps made."""

    @property
    def parent_step_key(self) -> str:
        """The step that this run is under; empty: none."""
        return self.key[0]

    @property
    def agent_name(self) -> str:
        """The agent."""
        return self.key[1]


def find_runs(chain: Chain) -> tuple[Run, ...]:
    """Groups the steps of a diagnosis into runs, each after the run that it lies in.

    A run whose parent step did not come lies in the diagnosis itself. So does one that would lie within itself, as the
    keys that a program made up may say.
    """
    runs: dict[RunKey, Run] = {}
    of_step: dict[str, Run] = {}
    for step in chain.steps:
        key = (step.parent_step_key or "", step.agent_name)
        run = runs.setdefault(key, Run(key))
        run.steps.append(step)
        run.tools.extend(step.tool_invocations)
        of_step[step.step_key] = run
    settled: dict[RunKey, Run] = {}
    for run in runs.values():
        inwards: dict[RunKey, Run] = {}
        at: Run | None = run
        while at is not None and at.key not in settled:
            inwards[at.key] = at
            at.parent = of_step.get(at.parent_step_key)
            if at.parent is not None and at.parent.key in inwards:
                at.parent = None
            at = at.parent
        settled.update(reversed(inwards.items()))
    return tuple(settled.values())
