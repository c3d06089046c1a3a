"""The SQL of a verification of one space's forest."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, delete, distinct, func, insert, literal, or_, select, update

from ramet_server.database.tables.shared import space
from ramet_server.database.tables.tree import (
    node_ref,
    session_removal,
    session_summary,
    topology_node,
    tree_change,
)
from ramet_server.domain.clock import SystemClock
from tree_service.rules.values import ChangeKind, Ref, SessionRemoval
from tree_service.rules.verifying.ports import Changes, Family, Standing
from tree_service.store.changes import SqlChanges
from tree_service.store.rows import children_of, chunks, place
from tree_service.store.spaces import SqlSpace

_T, _F, _X, _C = topology_node.c, node_ref.c, session_removal.c, tree_change.c
_STANDING = (_T.node_id, _T.parent_id, _T.depth, _T.index, _T.child_count, _T.awaits_content, _T.created_at)
_FAMILY = (func.count(), func.min(_T.index), func.max(_T.index), func.count(distinct(_T.index)))


class SqlAudit:
    """All that is looked at; implements ``rules.verifying.ports.Audit``."""

    def __init__(self, connection: Connection, space_id: str) -> None:
        self._connection = connection
        self._space = space_id
        self._locked = SqlSpace(connection, space_id)

    def space_after(self, name: str) -> str | None:
        """Returns the next space, by name, that has rows of this service."""
        found = [
            self._connection.execute(select(func.min(t.c.space_id)).where(t.c.space_id > name)).scalar_one()
            for t in (topology_node, node_ref, session_removal, tree_change, space)
        ]
        return min((each for each in found if each is not None), default=None)

    def lock(self) -> int | None:
        """Makes every other change of the space wait until this unit ends."""
        return self._locked.lock()

    def root_count(self) -> int | None:
        """Returns the number of roots that the space knows; None where it has no row."""
        found: int | None = self._connection.execute(
            select(space.c.root_count).where(space.c.space_id == self._space)
        ).scalar_one_or_none()
        return found

    def changes(self) -> Changes | None:
        """Returns what is kept of the changes of the forest; None where the space has no row."""
        here = space.c.space_id == self._space
        row = self._connection.execute(select(space.c.tree_position, space.c.tree_floor).where(here)).one_or_none()
        if row is None:
            return None
        position, floor = row
        behind = and_(_C.space_id == self._space, _C.position > floor, _C.position <= position)
        count = self._connection.execute(select(func.count()).select_from(tree_change).where(behind)).scalar_one()
        return Changes(position, floor, count, self._last_change())

    def set_changes(self, position: int, floor: int) -> None:
        """Stores which changes are kept."""
        changed = {"tree_position": position, "tree_floor": floor}
        self._connection.execute(update(space).where(space.c.space_id == self._space).values(changed))
        self._connection.execute(delete(tree_change).where(_C.space_id == self._space, _C.position <= floor))

    def tell(self, kind: ChangeKind, node_ids: Sequence[str]) -> None:
        """Tells those who watch the forest; nothing where the space has no row."""
        if self._locked.tree_position is not None:
            SqlChanges(self._connection, self._space, self._locked, SystemClock()).tell(kind, node_ids)

    def make_space(self, root_count: int, now: datetime) -> None:
        """Makes the row of the space."""
        # Whoever watches must read the forest anew.
        last = self._last_change()
        row = {"root_count": root_count, "created_at": now, "tree_position": last, "tree_floor": last}
        self._connection.execute(insert(space).values(space_id=self._space, **row))

    def set_root_count(self, count: int) -> None:
        """Stores another number of roots."""
        self._connection.execute(update(space).where(space.c.space_id == self._space).values(root_count=count))

    def nodes(self, after_id: str, limit: int) -> list[Standing]:
        """Returns the next nodes by id."""
        wanted = select(*_STANDING).where(_T.space_id == self._space, _T.node_id > after_id)
        rows = self._connection.execute(wanted.order_by(_T.node_id).limit(limit))
        return [Standing(*row) for row in rows]

    def some(self, node_ids: Collection[str]) -> Mapping[str, Standing]:
        """Returns those of these nodes that exist."""
        found: dict[str, Standing] = {}
        for some in chunks(sorted(node_ids)):
            rows = self._connection.execute(select(*_STANDING).where(_T.space_id == self._space, _T.node_id.in_(some)))
            found.update((row.node_id, Standing(*row)) for row in rows)
        return found

    def families(self, parent_ids: Collection[str]) -> Mapping[str, Family]:
        """Returns the children of these nodes, counted; those without any are left out."""
        found: dict[str, Family] = {}
        for some in chunks(sorted(parent_ids)):
            rows = self._connection.execute(
                select(_T.parent_id, *_FAMILY)
                .where(_T.space_id == self._space, _T.parent_id.in_(some))
                .group_by(_T.parent_id)
            )
            found.update((row[0], _family(row[1:])) for row in rows)
        return found

    def roots(self) -> Family:
        """Returns the roots, counted."""
        return _family(self._connection.execute(select(*_FAMILY).where(children_of(self._space, None))).one())

    def children(self, parent_ids: Sequence[str | None]) -> list[Standing]:
        """Returns the children of these nodes (None: the roots), by parent, index, time and id."""
        named = [each for each in parent_ids if each is not None]
        theirs = and_(_T.space_id == self._space, _T.parent_id.in_(named))
        where = or_(theirs, children_of(self._space, None)) if None in parent_ids and named else theirs
        if not named:
            where = children_of(self._space, None)
        order = (_T.parent_id, _T.index, _T.created_at, _T.node_id)
        return [Standing(*row) for row in self._connection.execute(select(*_STANDING).where(where).order_by(*order))]

    def ancestor_ids(self, node_id: str) -> set[str]:
        """Returns the ids of the ancestors, the node's own among them where it stands below itself."""
        above = select(_T.parent_id).where(place(self._space, node_id)).cte("above", recursive=True)
        parent = topology_node.alias("parent")
        # UNION, not UNION ALL: what comes back to itself ends.
        line = above.union(
            select(parent.c.parent_id).join_from(
                above, parent, and_(parent.c.space_id == self._space, parent.c.node_id == above.c.parent_id)
            )
        )
        return {found for found in self._connection.execute(select(line.c.parent_id)).scalars() if found is not None}

    def save(self, node_id: str, **values: object) -> None:
        """Stores other values of a node."""
        self._connection.execute(update(topology_node).where(place(self._space, node_id)).values(**values))

    def delete(self, node_id: str) -> None:
        """Removes the row of a node."""
        self._connection.execute(delete(topology_node).where(place(self._space, node_id)))

    def set_depths(self, node_ids: Sequence[str], depth: int) -> None:
        """Stores one depth for many nodes."""
        for some in chunks(node_ids):
            here = and_(_T.space_id == self._space, _T.node_id.in_(some))
            self._connection.execute(update(topology_node).where(here).values(depth=depth))

    def has_session(self, node_id: str) -> bool:
        """Tells whether there is a session of this id."""
        c = session_summary.c
        wanted = select(literal(1)).where(c.space_id == self._space, c.session_id == node_id)
        return self._connection.execute(wanted).first() is not None

    def refs(self, after: tuple[str, str], limit: int) -> list[Ref]:
        """Returns the next references by node and target."""
        node_id, target_id = after
        parts = (and_(_F.node_id == node_id, _F.target_id > target_id), _F.node_id > node_id)
        found: list[Ref] = []
        # One condition over both columns would not drive on the index; each of these does.
        for part in parts:
            if len(found) < limit:
                wanted = select(_F.node_id, _F.target_id).where(_F.space_id == self._space, part)
                rows = self._connection.execute(wanted.order_by(_F.node_id, _F.target_id).limit(limit - len(found)))
                found += [Ref(*row) for row in rows]
        return found

    def ref(self, ref: Ref) -> bool:
        """Tells whether a reference is there."""
        return self._connection.execute(select(literal(1)).where(self._this(ref))).first() is not None

    def with_refs(self, node_ids: Collection[str]) -> set[str]:
        """Returns those of these nodes that refer to others, or that others refer to."""
        found: set[str] = set()
        for some in chunks(sorted(node_ids)):
            for end in (_F.node_id, _F.target_id):
                wanted = select(end).distinct().where(_F.space_id == self._space, end.in_(some))
                found.update(self._connection.execute(wanted).scalars())
        return found

    def remove_ref(self, ref: Ref) -> None:
        """Removes a reference."""
        self._connection.execute(delete(node_ref).where(self._this(ref)))

    def removals(self, before: datetime, after_id: str, limit: int) -> list[SessionRemoval]:
        """Returns, by session, what is to be removed since before a moment."""
        wanted = select(_X.space_id, _X.session_id, _X.origin, _X.requested_at).where(
            _X.space_id == self._space, _X.session_id > after_id, _X.requested_at < before
        )
        rows = self._connection.execute(wanted.order_by(_X.session_id).limit(limit))
        return [SessionRemoval(*row) for row in rows]

    def _last_change(self) -> int:
        wanted = select(func.max(_C.position)).where(_C.space_id == self._space)
        return self._connection.execute(wanted).scalar_one() or 0

    def _this(self, ref: Ref) -> Any:
        return and_(_F.space_id == self._space, _F.node_id == ref.node_id, _F.target_id == ref.target_id)


def _family(row: Any) -> Family:
    count, first, last, different = row
    return Family(count, first, last, different) if count else Family()
