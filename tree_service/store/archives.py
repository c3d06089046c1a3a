"""The SQL of archives: configs and references of many nodes at once."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from sqlalchemy import Connection, insert, select

from ramet_server.database.database import Database
from ramet_server.database.tables.tree import node_ref, topology_node
from ramet_server.domain.call import Call
from ramet_server.domain.clock import Clock
from ramet_server.domain.limits import Limits
from tree_service.rules.archiving.ports import ArchiveUnit, DatedRef
from tree_service.rules.values import Config, Node
from tree_service.store.rows import NODE_COLUMNS, chunks, may_be_seen, node_of
from tree_service.store.units import TreeUnit, write_making_space

_r, _t = node_ref.c, topology_node.c

T = TypeVar("T")


class SqlArchives:
    """Implements ``rules.archiving.ports.Archives``."""

    def __init__(self, connection: Connection, space_id: str) -> None:
        self._connection = connection
        self._space_id = space_id

    def nodes(self, node_ids: Collection[str]) -> Mapping[str, Node]:
        """Returns those nodes that a reader may see."""
        found: dict[str, Node] = {}
        for some in chunks(sorted(node_ids)):
            wanted = select(*NODE_COLUMNS).where(_t.space_id == self._space_id, _t.node_id.in_(some), may_be_seen)
            found.update((node.node_id, node) for node in map(node_of, self._connection.execute(wanted)))
        return found

    def configs(self, node_ids: Collection[str]) -> Mapping[str, Config]:
        """Returns the configs of nodes that exist."""
        found: dict[str, Config] = {}
        for some in chunks(sorted(node_ids)):
            rows = self._connection.execute(
                select(_t.node_id, _t.config_system_prompt, _t.config_skills_json, _t.config_version).where(
                    _t.space_id == self._space_id, _t.node_id.in_(some)
                )
            )
            for node_id, system_prompt, skills_json, version in rows:
                skills = None if skills_json is None else tuple(json.loads(skills_json))
                found[node_id] = Config(system_prompt, skills, version)
        return found

    def refs(self, node_ids: Collection[str]) -> Sequence[DatedRef]:
        """Returns the references from these nodes: by node, then in the order in which they were added."""
        found: list[DatedRef] = []
        for some in chunks(sorted(node_ids)):
            rows = self._connection.execute(
                select(_r.node_id, _r.target_id, _r.created_at)
                .where(_r.space_id == self._space_id, _r.node_id.in_(some))
                .order_by(_r.node_id, _r.created_at, _r.target_id)
            )
            found += [DatedRef(*row) for row in rows]
        return found

    def referring(self, after_id: str, limit: int) -> list[str]:
        """Returns the next nodes, by id, that refer to others."""
        wanted = (
            select(_r.node_id)
            .distinct()
            .where(_r.space_id == self._space_id, _r.node_id > after_id)
            .order_by(_r.node_id)
            .limit(limit)
        )
        return list(self._connection.execute(wanted).scalars())

    def add_ref(self, ref: DatedRef) -> None:
        """Stores a reference."""
        row = {"node_id": ref.node_id, "target_id": ref.target_id, "created_at": ref.created_at}
        self._connection.execute(insert(node_ref), {"space_id": self._space_id, **row})


class ArchiveTreeUnit(TreeUnit):
    """One transaction with what archives need; implements ``rules.archiving.ports.ArchiveUnit``."""

    def __init__(self, connection: Connection, space: str, limits: Limits, clock: Clock) -> None:
        super().__init__(connection, space, limits, clock)
        self.archives = SqlArchives(connection, space)


class ArchiveTreeStore:
    """Opens units of work; implements ``rules.archiving.ports.ArchiveStore``."""

    def __init__(self, database: Database, limits: Limits, clock: Clock) -> None:
        self._database = database
        self._limits = limits
        self._clock = clock

    def write(self, call: Call, fn: Callable[[ArchiveUnit], T]) -> T:
        """Runs ``fn`` and commits; ``fn`` may run more than once, and only its last run counts."""

        def work(connection: Connection) -> T:
            return fn(ArchiveTreeUnit(connection, call.space, self._limits, self._clock))

        return write_making_space(self._database, call, self._clock, work)
