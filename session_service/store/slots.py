"""The SQL of context slots."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Integer,
    and_,
    bindparam,
    delete,
    func,
    insert,
    literal_column,
    select,
    update,
)

from ramet_server.database.prepared import Prepared, Row
from ramet_server.database.tables.session import context_slot, session
from session_service.rules.values import UNWRITTEN, SessionSlots, Slot, SlotName
from session_service.store import ranges

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
def _joined(sessions: int, slots: int, *, sizes: bool = False, bounded: bool = False) -> Prepared:
    """So many sessions with their written slots, one row each; a session without any still has a row."""
    length = func.coalesce(func.length(context_slot.c.content), literal_column("0"))
    content = (length,) if sizes else (context_slot.c.content, context_slot.c.version, context_slot.c.updated_at)
    query = (
        select(session.c.session_id, context_slot.c.slot, *content)
        .select_from(session)
        .outerjoin(
            context_slot,
            and_(
                context_slot.c.space_id == session.c.space_id,
                context_slot.c.session_id == session.c.session_id,
                context_slot.c.slot.in_(_named("slot", slots, context_slot.c.slot)),
            ),
        )
        .where(
            session.c.space_id == _IN_SPACE,
            session.c.session_id.in_(_named("session", sessions, session.c.session_id)),
        )
    )
    return Prepared(query.where(length <= bindparam("longest", type_=Integer())) if bounded else query)


def _named(name: str, count: int, column: ColumnElement[Any]) -> list[BindParameter[Any]]:
    return [bindparam(f"{name}{place}", type_=column.type) for place in range(count)]


class SqlSlots:
    """Slots of the sessions of one space; implements ``rules.ports.Slots``."""

    def __init__(self, connection: Connection, space: str) -> None:
        self._connection = connection
        self._space = space

    def read(self, session_id: str, names: Collection[SlotName]) -> Mapping[SlotName, Slot] | None:
        """Returns the slots, unwritten ones too; None where there is no session."""
        found = self.read_many([session_id], names).get(session_id)
        return None if found is None else found.slots

    def version(self, session_id: str, name: SlotName) -> int:
        """Returns the version of one slot of a session that exists."""
        return self._connection.execute(_VERSION, self._key(session_id, name)).scalar_one_or_none() or 0

    def sizes(self, session_ids: Sequence[str], names: Collection[SlotName]) -> Mapping[str, int]:
        """Returns the size of all content of each session that exists, in characters or bytes."""
        sizes: dict[str, int] = {}
        for session_id, _, size in self._rows(_joined(*_counts(session_ids, names), sizes=True), session_ids, names):
            sizes[session_id] = sizes.get(session_id, 0) + size
        return sizes

    def read_many(self, session_ids: Collection[str], names: Collection[SlotName]) -> Mapping[str, SessionSlots]:
        """Returns the slots of those sessions that exist."""
        slots: dict[str, dict[SlotName, Slot]] = {}
        for session_id, name, *slot in self._rows(_joined(*_counts(session_ids, names)), session_ids, names):
            written = slots.setdefault(session_id, {})
            if name is not None:
                written[SlotName(name)] = Slot(*slot)
        return {found: _filled(found, written, names) for found, written in slots.items()}

    def read_light(self, session_ids: Collection[str], name: SlotName, longest: int) -> Mapping[str, Slot]:
        """Returns one slot of each session that exists and whose slot is no longer than that."""
        statement = _joined(*_counts(session_ids, (name,)), bounded=True)
        return {
            session_id: UNWRITTEN if written is None else Slot(*slot)
            for session_id, written, *slot in self._rows(statement, session_ids, (name,), longest)
        }

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

    def _rows(
        self,
        statement: Prepared,
        session_ids: Collection[str],
        names: Collection[SlotName],
        longest: int | None = None,
    ) -> Sequence[Row]:
        values = {"in_space": self._space, "longest": longest}
        values |= ranges.padded("session", session_ids) | ranges.padded("slot", names)
        return statement.all(self._connection, values)

    def _key(self, session_id: str, name: SlotName) -> dict[str, Any]:
        return {"in_space": self._space, "of_session": session_id, "named": name}


def _counts(session_ids: Collection[str], names: Collection[SlotName]) -> tuple[int, int]:
    return ranges.rounded(len(session_ids)), ranges.rounded(len(names))


def _filled(session_id: str, written: Mapping[SlotName, Slot], names: Collection[SlotName]) -> SessionSlots:
    return SessionSlots(session_id, {name: written.get(name, UNWRITTEN) for name in names})
