"""What an orchestrator was told of its sessions: defaults, profiles, who may split, and what runs which session."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import grpc

from ramet.client import FailedPrecondition, InvalidArgument
from ramet.client.arguments import of_kind, refused, text
from ramet.orchestrator.calling import call
from ramet.orchestrator.config import Layers, Profile, Runtime, SessionDefaults

__all__ = ["Guard", "Registry", "Split"]


@dataclass(frozen=True)
class Split:
    """A fork that somebody asks for, as a guard sees it."""

    source_id: str
    """What is to be forked."""
    topology_parent: str
    """Where the fork would stand."""
    session_id: str | None
    """The fork's id where one is asked for."""
    label: str
    """The fork's label."""
    profile: str | None
    """The profile that is named; None: none."""
    profile_vars: Mapping[str, Any]
    """What the profile's prompt would be made of."""


Guard: TypeAlias = Callable[[Split], bool | str | Awaitable[bool | str | None] | None]
"""Judges a split before anything is made: False or a text, the reason, refuses it. What it raises is raised."""


class Registry:
    """Defaults, profiles and runtimes of one orchestrator. What it keeps of a session is gone with the session."""

    def __init__(
        self, defaults: SessionDefaults | None, profiles: Mapping[str, Profile] | None, guard: Guard | None
    ) -> None:
        self._defaults = of_kind(SessionDefaults, defaults or SessionDefaults(), "defaults")
        self._profiles: dict[str, Profile] = {}
        for name, profile in (profiles or {}).items():
            self.register(name, profile)
        self._guard = guard
        self._runtimes: dict[str, Runtime] = {}

    def register(self, name: str, profile: Profile) -> None:
        """Registers a profile, in place of one that has the name."""
        self._profiles[text(name, "name")] = of_kind(Profile, profile, "profile")

    def layers(self, profile: str | None, variables: Mapping[str, Any] | None) -> Layers:
        """Returns the layers that an operation names; an unregistered profile is refused."""
        if variables is not None and not isinstance(variables, Mapping):
            raise refused("profile_vars", f"must be a mapping, not {type(variables).__name__}")
        return Layers(self._defaults, self._profile(profile), variables or {})

    async def permit(self, split: Split) -> None:
        """Asks the guard; raises FailedPrecondition, FORK_REFUSED."""
        verdict = True if self._guard is None else await call(self._guard, split)
        if verdict is False or isinstance(verdict, str):
            raise FailedPrecondition(
                verdict or "The guard refuses this fork.",
                code=grpc.StatusCode.FAILED_PRECONDITION,
                reason="FORK_REFUSED",
            )

    def remember(self, session_id: str, profile: str | None, runtime: Runtime | None) -> None:
        """Keeps what runs a session that was just made."""
        own = self._over(Runtime(), profile, runtime)
        if not own.is_empty:
            self._runtimes[session_id] = own

    def forget(self, session_ids: Iterable[str]) -> None:
        """Forgets sessions that are gone."""
        for session_id in session_ids:
            self._runtimes.pop(session_id, None)

    def runtime(self, session_id: str, profile: str | None, runtime: Runtime | None) -> Runtime:
        """Lays defaults, what the session was made with, profile and options over each other."""
        made_with = self._runtimes.get(session_id, Runtime()).over(self._defaults.runtime)
        return self._over(made_with, profile, runtime)

    def _over(self, lower: Runtime, profile: str | None, runtime: Runtime | None) -> Runtime:
        named = self._profile(profile)
        if named is not None:
            lower = named.runtime.over(lower)
        return lower if runtime is None else of_kind(Runtime, runtime, "runtime").over(lower)

    def _profile(self, name: str | None) -> Profile | None:
        if name is None:
            return None
        found = self._profiles.get(text(name, "profile"))
        if found is None:
            raise InvalidArgument(
                f"There is no profile {name!r}; registered: {', '.join(self._profiles) or 'none'}.",
                code=grpc.StatusCode.INVALID_ARGUMENT,
                reason="UNKNOWN_PROFILE",
            )
        return found
