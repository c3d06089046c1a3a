"""Config by layers: defaults, the source's frozen config, a profile, options. Later wins, what is absent overrides
nothing. The system prompt and the skills are frozen with a session; the rest is of the process that runs it.
"""

import enum
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias

from ramet.client import Config, Record
from ramet.client.arguments import choice, of_kind, refused, text, texts
from ramet.orchestrator.calling import call
from ramet.orchestrator.models import Model, Tool

__all__ = [
    "Budget",
    "Compress",
    "Consolidate",
    "Layers",
    "Profile",
    "PromptFunction",
    "PromptMode",
    "Runtime",
    "SessionDefaults",
]

Consolidate: TypeAlias = Callable[[Sequence[Record], str | None], str | Awaitable[str | None] | None]
"""Makes a session's memory of its records and of the memory so far; None leaves it as it is."""

PromptFunction: TypeAlias = Callable[[Mapping[str, Any]], str | Awaitable[str | None] | None]
"""Makes a system prompt of ``profile_vars``; None: none. It makes the same of the same, or a retry cannot go on."""


@dataclass(frozen=True)
class Budget:
    """How much history a send takes, counted from its end; a tool-call group is never split."""

    records: int | None = None
    """None: 10,000, which is the most."""
    characters: int | None = None
    """Code points of content and tool calls. None: what a server sends at once, 16 MiB."""


Compress: TypeAlias = Callable[[Sequence[Record], Budget], Iterable[Record] | Awaitable[Iterable[Record]]]
"""Makes a shorter history of one that is over the budget. What it makes is for one send and is not stored; each record
has its ``seq``, by which a summary of the older ones can be kept for the next time."""


@dataclass(frozen=True)
class Runtime:
    """What runs a session: not stored, and of this process. None inherits from the layer below."""

    llm: Model | None = None
    """The model of its turns."""
    tools: Iterable[Tool] | None = None
    """The tools of its turns, replaced as a whole; empty: none."""
    consolidate: Consolidate | None = None
    """What ``consolidate`` runs where it is given no function."""
    compress: Compress | None = None
    """Called where the history is over the budget, or always where there is no budget."""
    budget: Budget | None = None
    """How much history a send takes."""
    max_rounds: int | None = None
    """Most calls of the model in one turn; 16 where no layer says."""
    agent: str | None = None
    """Under which name a recorder keeps its steps, at most 32 characters; ``assistant`` where no layer says."""

    def __post_init__(self) -> None:
        """Refuses what can never work where it is made, rather than in the middle of a turn."""
        if self.tools is not None:
            object.__setattr__(self, "tools", _checked_tools(self.tools))
        for name in ("llm", "consolidate", "compress"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                raise refused(name, "must be callable")
        if self.budget is not None:
            of_kind(Budget, self.budget, "budget")
        if self.max_rounds is not None and of_kind(int, self.max_rounds, "max_rounds") < 1:
            raise refused("max_rounds", "must be at least 1")
        if self.agent is not None:
            of_kind(str, self.agent, "agent")

    def over(self, lower: "Runtime") -> "Runtime":
        """Lays this over another: what is absent here is taken from there."""
        return replace(lower, **dict(self._given()))

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing."""
        return not self._given()

    def _given(self) -> list[tuple[str, Any]]:
        pairs = [(each.name, getattr(self, each.name)) for each in fields(self)]
        return [(name, value) for name, value in pairs if value is not None]


class PromptMode(enum.StrEnum):
    """How a profile's prompt and the option's are joined."""

    PRESET = "preset"
    """The profile's alone; the option's only where the profile has none."""
    PREPEND = "prepend"
    """The profile's, a blank line, the option's."""
    APPEND = "append"
    """The option's, a blank line, the profile's."""


@dataclass(frozen=True)
class SessionDefaults:
    """The lowest layer: what holds for every session where nothing else is said."""

    system_prompt: str | None = None
    """None: none."""
    skills: Iterable[str] | None = None
    """None: none are told."""
    runtime: Runtime = field(default_factory=Runtime)
    """What runs sessions."""

    def __post_init__(self) -> None:
        """Refuses what can never work where it is made."""
        if self.skills is not None:
            object.__setattr__(self, "skills", texts(self.skills, "skills"))
        if self.system_prompt is not None:
            text(self.system_prompt, "system_prompt")
        of_kind(Runtime, self.runtime, "runtime")


@dataclass(frozen=True)
class Profile:
    """A kind of session, registered under a name."""

    system_prompt: str | PromptFunction | None = None
    """A text, or what makes it of ``profile_vars``; None: the profile has none."""
    mode: PromptMode = PromptMode.PREPEND
    """How it is joined with the option's."""
    skills: Iterable[str] | None = None
    """None inherits; empty: none."""
    runtime: Runtime = field(default_factory=Runtime)
    """What runs sessions of this kind."""

    def __post_init__(self) -> None:
        """Refuses what can never work where it is made."""
        object.__setattr__(self, "mode", choice(PromptMode, self.mode, "mode"))
        if self.skills is not None:
            object.__setattr__(self, "skills", texts(self.skills, "skills"))
        of_kind(Runtime, self.runtime, "runtime")
        if self.system_prompt is not None and not callable(self.system_prompt):
            of_kind(str, self.system_prompt, "system_prompt")


@dataclass(frozen=True)
class Layers:
    """The layers that an operation names, between the source's frozen config and the options."""

    defaults: SessionDefaults
    """Below everything."""
    profile: Profile | None
    """Above the source's frozen config; None: none was named."""
    variables: Mapping[str, Any]
    """What the profile's prompt is made of, where a function makes it."""

    async def frozen(self, inherited: Config | None, options: Config) -> Config:
        """Composes what is frozen with a session; ``inherited`` is its source's."""
        prompt, skills = await _joined(self.profile, self.variables, options.system_prompt), options.skills
        if skills is None and self.profile is not None and self.profile.skills is not None:
            skills = tuple(self.profile.skills)
        for layer in (inherited, self.defaults):
            if layer is not None:
                prompt = layer.system_prompt if prompt is None else prompt
                skills = tuple(layer.skills) if skills is None and layer.skills is not None else skills
        return Config(prompt, skills)


async def _joined(profile: Profile | None, variables: Mapping[str, Any], option: str | None) -> str | None:
    if profile is None:
        return option
    own = profile.system_prompt
    if callable(own):
        own = await call(own, variables)
        if own is not None:
            of_kind(str, own, "profile")
    if profile.mode is PromptMode.PRESET and own is not None:
        return own
    parts = [own, option] if profile.mode is PromptMode.PREPEND else [option, own]
    given = [part for part in parts if part is not None]
    return "\n\n".join(part for part in given if part) if given else None


def _checked_tools(tools: object) -> tuple[Tool, ...]:
    if isinstance(tools, str | Mapping) or not isinstance(tools, Iterable):
        raise refused("tools", "must be a list of tools")
    listed = tuple(tools)
    names: list[object] = [of_kind(Tool, tool, f"tools[{place}]").name for place, tool in enumerate(listed)]
    for place, name in enumerate(names):
        if not isinstance(name, str) or not name or name in names[:place]:
            raise refused(f"tools[{place}].name", "must be a text of its own")
        if not callable(listed[place].function):
            raise refused(f"tools[{place}].function", "must be callable")
    return listed
