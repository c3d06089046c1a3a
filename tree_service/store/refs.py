"""The SQL of references across the forest."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, func, insert, select

from ramet_server.database.tables.tree import node_ref
from tree_service.rules.values import Ref
from tree_service.store.rows import chunks

_r = node_ref.c
_MICROSECOND = timedelta(microseconds=1)


class SqlRefs:
    """Implements ``rules.ports.Refs``."""

    def __init__(self, connection: Connection, space_id: str) -> None:
        self._connection = connection
        self._space_id = space_id

    def of(self, node_ids: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """Returns the targets of each node that has some, in the order in which they were added."""
        targets: dict[str, list[str]] = defaultdict(list)
        for some in chunks(node_ids):
            rows = self._connection.execute(
                select(_r.node_id, _r.target_id)
                .where(_r.space_id == self._space_id, _r.node_id.in_(some))
                .order_by(_r.node_id, _r.created_at, _r.target_id)
            )
            for node_id, target_id in rows:
                targets[node_id].append(target_id)
        return {node_id: tuple(some) for node_id, some in targets.items()}

    def has(self, ref: Ref) -> bool:
        """Tells whether the reference is there."""
        found = self._connection.execute(
            select(_r.target_id).where(
                _r.space_id == self._space_id, _r.node_id == ref.node_id, _r.target_id == ref.target_id
            )
        )
        return found.one_or_none() is not None

    def add(self, ref: Ref, now: datetime) -> None:
        """Adds a reference after all others of its node."""
        last: datetime | None = self._connection.execute(
            select(func.max(_r.created_at)).where(_r.space_id == self._space_id, _r.node_id == ref.node_id)
        ).scalar_one()
        # Clocks may stand still or go back; the order may not.
        at = now if last is None else max(now, last + _MICROSECOND)
        self._connection.execute(
            insert(node_ref).values(
                space_id=self._space_id, node_id=ref.node_id, target_id=ref.target_id, created_at=at
            )
        )

    def remove(self, refs: Collection[Ref]) -> None:
        """Removes these references."""
        by_node: dict[str, list[str]] = defaultdict(list)
        for ref in refs:
            by_node[ref.node_id].append(ref.target_id)
        for node_id, targets in sorted(by_node.items()):
            for some in chunks(sorted(targets)):
                self._connection.execute(
                    delete(node_ref).where(_r.space_id == self._space_id, _r.node_id == node_id, _r.target_id.in_(some))
                )

    def touching(self, node_ids: Sequence[str]) -> set[Ref]:
        """Returns all references from and to these nodes."""
        found: set[Ref] = set()
        for some in chunks(node_ids):
            for end in (_r.node_id, _r.target_id):
                rows = self._connection.execute(
                    select(_r.node_id, _r.target_id).where(_r.space_id == self._space_id, end.in_(some))
                )
                found.update(Ref(*row) for row in rows)
        return found
