"""The SQL of context slots."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, func, insert, select, update

from ramet_server.database.tables.session import context_slot, session
from session_service.rules.values import UNWRITTEN, SessionSlots, Slot, SlotName


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
        query = select(context_slot.c.version).where(self._key(session_id, name))
        return self._connection.execute(query).scalar_one_or_none() or 0

    def sizes(self, session_ids: Sequence[str], names: Collection[SlotName]) -> Mapping[str, int]:
        """Returns the size of all content of each session that exists, in characters or bytes."""
        sizes: dict[str, int] = {}
        size = func.coalesce(func.length(context_slot.c.content), 0)
        for row in self._joined(session_ids, names, size.label("size")):
            sizes[row.session_id] = sizes.get(row.session_id, 0) + row.size
        return sizes

    def read_many(self, session_ids: Sequence[str], names: Collection[SlotName]) -> Mapping[str, SessionSlots]:
        """Returns the slots of those sessions that exist."""
        slots: dict[str, dict[SlotName, Slot]] = {}
        for row in self._joined(session_ids, names, context_slot.c.content):
            written = slots.setdefault(row.session_id, {})
            if row.slot is not None:
                written[SlotName(row.slot)] = Slot(row.content, row.version, row.updated_at)
        return {found: _filled(found, written, names) for found, written in slots.items()}

    def write(self, session_id: str, name: SlotName, slot: Slot) -> None:
        """Stores a slot of a locked session; its version says whether it is the first."""
        values = {"content": slot.content, "version": slot.version, "updated_at": slot.updated_at}
        if slot.version > 1:
            self._connection.execute(update(context_slot).where(self._key(session_id, name)).values(**values))
            return
        self._connection.execute(
            insert(context_slot).values(space_id=self._space, session_id=session_id, slot=name, **values)
        )

    def consume(self, session_id: str, name: SlotName, version: int, now: datetime) -> bool:
        """Unsets a slot that is set and has this version; tells whether it did."""
        result = self._connection.execute(
            update(context_slot)
            .where(self._key(session_id, name), context_slot.c.version == version, context_slot.c.content.is_not(None))
            .values(content=None, version=version + 1, updated_at=now)
        )
        return result.rowcount > 0

    def delete(self, session_id: str) -> None:
        """Removes all slots of a session."""
        self._connection.execute(
            delete(context_slot).where(context_slot.c.space_id == self._space, context_slot.c.session_id == session_id)
        )

    def _joined(
        self, session_ids: Sequence[str], names: Collection[SlotName], content: ColumnElement[Any]
    ) -> Sequence[Row[Any, Any, Any, Any, Any]]:
        """The sessions with their written slots, one row each; a session without any still has a row."""
        query = (
            select(
                session.c.session_id, context_slot.c.slot, context_slot.c.version, context_slot.c.updated_at, content
            )
            .select_from(session)
            .outerjoin(
                context_slot,
                and_(
                    context_slot.c.space_id == session.c.space_id,
                    context_slot.c.session_id == session.c.session_id,
                    context_slot.c.slot.in_(sorted(names)),
                ),
            )
            .where(session.c.space_id == self._space, session.c.session_id.in_(session_ids))
        )
        return self._connection.execute(query).all()

    def _key(self, session_id: str, name: SlotName) -> ColumnElement[bool]:
        return and_(
            context_slot.c.space_id == self._space,
            context_slot.c.session_id == session_id,
            context_slot.c.slot == name,
        )


def _filled(session_id: str, written: Mapping[SlotName, Slot], names: Collection[SlotName]) -> SessionSlots:
    return SessionSlots(session_id, {name: written.get(name, UNWRITTEN) for name in names})
