"""What carrying nodes out and in asks of a store, beside the usual."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from ramet_server.domain.call import Call
from tree_service.rules.ports import UnitOfWork
from tree_service.rules.values import Config, Node

T = TypeVar("T")


@dataclass(frozen=True)
class DatedRef:
    """A reference, and when it was added."""

    node_id: str
    target_id: str
    created_at: datetime


class Archives(Protocol):
    """Configs and references of many nodes, and their writes as an archive has them; of one space."""

    def nodes(self, node_ids: Collection[str]) -> Mapping[str, Node]:
        """Returns those nodes that a reader may see."""
        ...

    def configs(self, node_ids: Collection[str]) -> Mapping[str, Config]:
        """Returns the configs of nodes that exist."""
        ...

    def refs(self, node_ids: Collection[str]) -> Sequence[DatedRef]:
        """Returns the references from these nodes: by node, then in the order in which they were added."""
        ...

    def referring(self, after_id: str, limit: int) -> list[str]:
        """Returns the next nodes, by id, that refer to others."""
        ...

    def add_ref(self, ref: DatedRef) -> None:
        """Stores a reference."""
        ...


class ArchiveUnit(UnitOfWork, Protocol):
    """One transaction over the forest of one space."""

    @property
    def archives(self) -> Archives:
        """What archives ask for."""
        ...


class ArchiveStore(Protocol):
    """Opens units of work in the space of a call."""

    def write(self, call: Call, fn: Callable[[ArchiveUnit], T]) -> T:
        """Runs ``fn`` and commits; ``fn`` may run more than once, and only its last run counts."""
        ...
