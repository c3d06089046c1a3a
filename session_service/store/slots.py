"""The SQL of context slots."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, bindparam, delete, func, insert, select, update

from ramet_server.database.prepared import Prepared
from ramet_server.database.tables.session import context_slot, session
from session_service.rules.values import UNWRITTEN, SessionSlots, Slot, SlotName

# Built once and run with parameters: building takes longer than running.
_IN_SPACE = bindparam("in_space", type_=context_slot.c.space_id.type)
_OF_SESSION = bindparam("of_session", type_=context_slot.c.session_id.type)
_KEY = and_(
    context_slot.c.space_id == _IN_SPACE,
    context_slot.c.session_id == _OF_SESSION,
    context_slot.c.slot == bindparam("named", type_=context_slot.c.slot.type),
)
_VERSION = select(context_slot.c.version).where(_KEY)
_WRITE = update(context_slot).where(_KEY)
_CONSUME = _WRITE.where(
    context_slot.c.version == bindparam("read_version", type_=context_slot.c.version.type),
    context_slot.c.content.is_not(None),
).values(version=context_slot.c.version + 1)
_DELETE = delete(context_slot).where(context_slot.c.space_id == _IN_SPACE, context_slot.c.session_id == _OF_SESSION)


@cache
def _joined(column: str) -> Select[Any]:
    """The sessions with their written slots, one row each; a session without any still has a row."""
    content = context_slot.c.content
    size = func.coalesce(func.length(content), 0).label("size")
    return (
        select(
            session.c.session_id,
            context_slot.c.slot,
            context_slot.c.version,
            context_slot.c.updated_at,
            size if column == "size" else content,
        )
        .select_from(session)
        .outerjoin(
            context_slot,
            and_(
                context_slot.c.space_id == session.c.space_id,
                context_slot.c.session_id == session.c.session_id,
                context_slot.c.slot.in_(bindparam("named", expanding=True, type_=context_slot.c.slot.type)),
            ),
        )
        .where(
            session.c.space_id == _IN_SPACE,
            session.c.session_id.in_(bindparam("of_sessions", expanding=True, type_=session.c.session_id.type)),
        )
    )


@cache
def _of_one(count: int) -> Prepared:
    """The slots of one session, of so many names: as ``_joined``, without what is known before."""
    return Prepared(
        select(context_slot.c.slot, context_slot.c.content, context_slot.c.version, context_slot.c.updated_at)
        .select_from(session)
        .outerjoin(
            context_slot,
            and_(
                context_slot.c.space_id == session.c.space_id,
                context_slot.c.session_id == session.c.session_id,
                context_slot.c.slot.in_(
                    [bindparam(f"named{place}", type_=context_slot.c.slot.type) for place in range(count)]
                ),
            ),
        )
        .where(session.c.space_id == _IN_SPACE, session.c.session_id == _OF_SESSION)
    )


class SqlSlots:
    """Slots of the sessions of one space; implements ``rules.ports.Slots``."""

    def __init__(self, connection: Connection, space: str) -> None:
        self._connection = connection
        self._space = space

    def read(self, session_id: str, names: Collection[SlotName]) -> Mapping[SlotName, Slot] | None:
        """Returns the slots, unwritten ones too; None where there is no session."""
        values: dict[str, str] = {f"named{place}": name for place, name in enumerate(names)}
        values |= {"in_space": self._space, "of_session": session_id}
        rows = _of_one(len(names)).all(self._connection, values)
        if not rows:
            return None
        written = {SlotName(slot): Slot(*found) for slot, *found in rows if slot is not None}
        return {name: written.get(name, UNWRITTEN) for name in names}

    def version(self, session_id: str, name: SlotName) -> int:
        """Returns the version of one slot of a session that exists."""
        return self._connection.execute(_VERSION, self._key(session_id, name)).scalar_one_or_none() or 0

    def sizes(self, session_ids: Sequence[str], names: Collection[SlotName]) -> Mapping[str, int]:
        """Returns the size of all content of each session that exists, in characters or bytes."""
        sizes: dict[str, int] = {}
        for row in self._rows("size", session_ids, names):
            sizes[row.session_id] = sizes.get(row.session_id, 0) + row.size
        return sizes

    def read_many(self, session_ids: Sequence[str], names: Collection[SlotName]) -> Mapping[str, SessionSlots]:
        """Returns the slots of those sessions that exist."""
        slots: dict[str, dict[SlotName, Slot]] = {}
        for row in self._rows("content", session_ids, names):
            written = slots.setdefault(row.session_id, {})
            if row.slot is not None:
                written[SlotName(row.slot)] = Slot(row.content, row.version, row.updated_at)
        return {found: _filled(found, written, names) for found, written in slots.items()}

    def write(self, session_id: str, name: SlotName, slot: Slot) -> None:
        """Stores a slot of a locked session; its version says whether it is the first."""
        values = {"content": slot.content, "version": slot.version, "updated_at": slot.updated_at}
        if slot.version > 1:
            self._connection.execute(_WRITE, values | self._key(session_id, name))
            return
        key = {"space_id": self._space, "session_id": session_id, "slot": name}
        self._connection.execute(insert(context_slot), values | key)

    def consume(self, session_id: str, name: SlotName, version: int, now: datetime) -> bool:
        """Unsets a slot that is set and has this version; tells whether it did."""
        values = {"content": None, "updated_at": now, "read_version": version}
        return self._connection.execute(_CONSUME, values | self._key(session_id, name)).rowcount > 0

    def delete(self, session_id: str) -> None:
        """Removes all slots of a session."""
        self._connection.execute(_DELETE, {"in_space": self._space, "of_session": session_id})

    def _rows(self, column: str, session_ids: Sequence[str], names: Collection[SlotName]) -> Sequence[Row[Any]]:
        values = {"in_space": self._space, "of_sessions": list(session_ids), "named": sorted(names)}
        return self._connection.execute(_joined(column), values).all()

    def _key(self, session_id: str, name: SlotName) -> dict[str, Any]:
        return {"in_space": self._space, "of_session": session_id, "named": name}


def _filled(session_id: str, written: Mapping[SlotName, Slot], names: Collection[SlotName]) -> SessionSlots:
    return SessionSlots(session_id, {name: written.get(name, UNWRITTEN) for name in names})
