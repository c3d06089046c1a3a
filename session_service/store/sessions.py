"""The SQL of sessions and their tags."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    Connection,
    Integer,
    Row,
    Select,
    and_,
    bindparam,
    delete,
    func,
    insert,
    literal_column,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from ramet_server.database.faults import is_duplicate
from ramet_server.database.moved import note
from ramet_server.database.prepared import Prepared
from ramet_server.database.tables.session import deleted_session, session, session_tag
from ramet_server.domain.errors import SessionExists
from session_service.rules.session_queries import Examined, SessionQuery
from session_service.rules.spans import Span
from session_service.rules.values import DeletedSession, Session, Status, View
from session_service.store import ranges
from session_service.store.listing import examine
from session_service.store.views import read_view

HISTORY = "history"
"""The kind of topic under which it is told that a session's history moved; the key is its origin."""

ROW = "session"
"""The kind of topic under which it is told that a session's row moved; see ``key_of_row``."""

COLUMNS = {
    "session_id": session.c.session_id,
    "origin": session.c.origin,
    "label": session.c.label,
    "status": session.c.status,
    "turn_count": session.c.turn_count,
    "metadata_json": session.c.metadata_json,
    "head_seq": session.c.head_seq,
    "floor_seq": session.c.floor_seq,
    "max_record_bytes": session.c.max_record_bytes,
    "open_groups": session.c.open_group_json,
    "version": session.c.version,
    "created_at": session.c.created_at,
    "updated_at": session.c.updated_at,
    "last_active_at": session.c.last_active_at,
}
"""The fields of a session, in their order, and where each is kept."""

_STATUS = list(COLUMNS).index("status")


def key_of_row(row: str) -> tuple[str, str]:
    """Returns space and id of the session that a topic of kind ROW names."""
    space, session_id = row.split("\n")
    return space, session_id


# Built once and run with the parameters of ``SqlSessions._one``: building takes longer than running.
_IN_SPACE = bindparam("in_space", type_=session.c.space_id.type)
_OF_SESSION = bindparam("of_session", type_=session.c.session_id.type)
_KEY = and_(session.c.space_id == _IN_SPACE, session.c.session_id == _OF_SESSION)
_KEYS = and_(
    session.c.space_id == _IN_SPACE,
    session.c.session_id.in_(bindparam("of_sessions", expanding=True, type_=session.c.session_id.type)),
)
_GET = select(*COLUMNS.values()).where(_KEY)
_LOCK = _GET.with_for_update()
_SHARE = _GET.with_for_update(read=True)
_SAVE = update(session).where(_KEY)
_DELETE = delete(session).where(_KEY)
_STANDS = select(session.c.origin, session.c.head_seq, session.c.floor_seq).where(
    session.c.origin.in_(bindparam("origins", expanding=True, type_=session.c.origin.type))
)
_TAGS = select(session_tag.c.tag).where(session_tag.c.space_id == _IN_SPACE, session_tag.c.session_id == _OF_SESSION)
_DELETE_TAGS = delete(session_tag).where(session_tag.c.space_id == _IN_SPACE, session_tag.c.session_id == _OF_SESSION)


@cache
def _with_tags(count: int, bounded: bool) -> Prepared:
    """So many sessions, each with its tags as one JSON text: both take one trip and are of one moment."""

    def build(dialect: str) -> Select[Any]:
        gather = func.json_arrayagg if dialect == "mysql" else func.json_group_array
        tags = select(gather(session_tag.c.tag)).where(
            session_tag.c.space_id == _IN_SPACE, session_tag.c.session_id == session.c.session_id
        )
        named = [bindparam(f"session{place}", type_=session.c.session_id.type) for place in range(count)]
        query = select(*COLUMNS.values(), tags.scalar_subquery()).where(
            session.c.space_id == _IN_SPACE, session.c.session_id.in_(named)
        )
        if bounded:
            size = func.coalesce(func.length(session.c.metadata_json), literal_column("0"))
            query = query.where(size <= bindparam("longest", type_=Integer()))
        return query

    return Prepared(build)


def _session_with_tags(row: Sequence[Any]) -> Session:
    """Returns what ``_with_tags`` reads."""
    values = list(row)
    values[_STATUS] = Status(values[_STATUS])
    tags_json = values[-1]
    values[-1] = tuple(sorted(json.loads(tags_json))) if tags_json else ()
    return Session(*values)


def _session(row: Row[Any]) -> Session:
    return Session(
        session_id=row.session_id,
        origin=row.origin,
        label=row.label,
        status=Status(row.status),
        turn_count=row.turn_count,
        metadata_json=row.metadata_json,
        head_seq=row.head_seq,
        floor_seq=row.floor_seq,
        max_record_bytes=row.max_record_bytes,
        open_groups=row.open_group_json,
        version=row.version,
        created_at=row.created_at,
        updated_at=row.updated_at,
        last_active_at=row.last_active_at,
    )


class SqlSessions:
    """Sessions of one space; implements ``rules.ports.Sessions``."""

    def __init__(self, connection: Connection, space: str) -> None:
        self._connection = connection
        self._space = space

    def get(self, session_id: str) -> Session | None:
        """Returns the session with its tags."""
        return self.get_many([session_id]).get(session_id)

    def get_many(self, session_ids: Collection[str], *, longest_metadata: int | None = None) -> Mapping[str, Session]:
        """Returns those that exist, with their tags; those with longer metadata_json are left out."""
        if not session_ids:
            return {}
        values = {"in_space": self._space, "longest": longest_metadata} | ranges.padded("session", session_ids)
        statement = _with_tags(ranges.rounded(len(session_ids)), longest_metadata is not None)
        found = map(_session_with_tags, statement.all(self._connection, values))
        return {each.session_id: each for each in found}

    def metadata_size(self, session_ids: Collection[str]) -> int:
        """Returns the size of all their metadata_json together, in characters or bytes."""
        total = select(func.coalesce(func.sum(func.length(session.c.metadata_json)), 0)).where(_KEYS)
        keys = {"in_space": self._space, "of_sessions": list(session_ids)}
        return int(self._connection.execute(total, keys).scalar_one())

    def view(
        self, session_id: str, after_seq: int, before_seq: int, *, descending: bool, limit: int | None
    ) -> tuple[View, list[Span]] | None:
        """Returns where the history stands and the spans that meet the range, both of one moment."""
        return read_view(
            self._connection, self._key(session_id), after_seq, before_seq, descending=descending, limit=limit
        )

    def lock(self, session_id: str) -> Session | None:
        """Returns the session without its tags; every other writer waits until this unit ends."""
        return self._one(_LOCK, session_id)

    def share(self, session_id: str) -> Session | None:
        """Returns the session without its tags; nobody can write it until this unit ends."""
        return self._one(_SHARE, session_id)

    def tags(self, session_id: str) -> tuple[str, ...]:
        """Returns the session's tags, sorted."""
        return tuple(sorted(self._connection.execute(_TAGS, self._key(session_id)).scalars()))

    def insert(self, new: Session) -> None:
        """Stores a new session with its tags; raises SessionExists where its id is taken."""
        values = {column.name: getattr(new, name) for name, column in COLUMNS.items()}
        try:
            self._connection.execute(insert(session), {"space_id": self._space, **values})
        except IntegrityError as error:
            if not is_duplicate(error):
                raise
            raise SessionExists("A session with this id exists.", field="session_id") from error
        self._add_tags(new.session_id, new.tags)

    def save(self, before: Session, after: Session) -> None:
        """Stores what differs of a locked session, tags included."""
        values = {
            column.name: getattr(after, name)
            for name, column in COLUMNS.items()
            if getattr(after, name) != getattr(before, name)
        }
        if values:
            note(self._connection, ROW, self._row(before.session_id))
            self._connection.execute(_SAVE, values | self._key(before.session_id))
        if (after.head_seq, after.floor_seq) != (before.head_seq, before.floor_seq):
            note(self._connection, HISTORY, before.origin)
        if after.tags != before.tags:
            self._remove_tags(before.session_id, set(before.tags) - set(after.tags))
            self._add_tags(before.session_id, sorted(set(after.tags) - set(before.tags)))

    def delete(self, gone: Session) -> None:
        """Removes the row and its tags."""
        self._connection.execute(_DELETE_TAGS, self._key(gone.session_id))
        self._connection.execute(_DELETE, self._key(gone.session_id))
        note(self._connection, HISTORY, gone.origin)
        note(self._connection, ROW, self._row(gone.session_id))

    def stands(self, origins: Collection[str]) -> Mapping[str, tuple[int, int]]:
        """Returns head and floor of the sessions, of any space, that began as one of these and still are."""
        rows = self._connection.execute(_STANDS, {"origins": list(origins)})
        return {row.origin: (row.head_seq, row.floor_seq) for row in rows}

    def note_deleted(self, session_id: str, now: datetime) -> None:
        """Notes for the sweep that the session was deleted; a later time replaces an earlier one."""
        # Nobody else notes this session: whoever deletes it has its lock.
        here = (deleted_session.c.space_id == self._space) & (deleted_session.c.session_id == session_id)
        if not self._connection.execute(update(deleted_session).where(here).values(deleted_at=now)).rowcount:
            self._connection.execute(
                insert(deleted_session).values(space_id=self._space, session_id=session_id, deleted_at=now)
            )

    def deleted(self, limit: int) -> list[DeletedSession]:
        """Returns notes of all spaces, oldest first."""
        t = deleted_session.c
        statement = select(t.space_id, t.session_id, t.deleted_at).order_by(t.deleted_at).limit(limit)
        return [DeletedSession(*row) for row in self._connection.execute(statement)]

    def forget_deleted(self, note: DeletedSession) -> None:
        """Removes a note, unless the session was deleted again since."""
        t = deleted_session.c
        self._connection.execute(
            delete(deleted_session).where(
                t.space_id == note.space_id, t.session_id == note.session_id, t.deleted_at == note.deleted_at
            )
        )

    def examine(self, query: SessionQuery) -> Examined:
        """Looks at a bounded stretch of the query's index."""
        session_ids, goes_on_after = examine(self._connection, self._space, query)
        found = self.get_many(session_ids)
        # Without a snapshot one may be deleted between the two queries.
        return Examined([found[session_id] for session_id in session_ids if session_id in found], goes_on_after)

    def _add_tags(self, session_id: str, tags: Iterable[str]) -> None:
        rows = [{"space_id": self._space, "session_id": session_id, "tag": tag} for tag in tags]
        if rows:
            self._connection.execute(insert(session_tag), rows)

    def _remove_tags(self, session_id: str, tags: Collection[str]) -> None:
        if tags:
            self._connection.execute(
                delete(session_tag).where(
                    session_tag.c.space_id == self._space,
                    session_tag.c.session_id == session_id,
                    session_tag.c.tag.in_(sorted(tags)),
                )
            )

    def _one(self, query: Select[Any], session_id: str) -> Session | None:
        row = self._connection.execute(query, self._key(session_id)).one_or_none()
        return None if row is None else _session(row)

    def _row(self, session_id: str) -> str:
        # Neither id may hold the end of a line.
        return f"{self._space}\n{session_id}"

    def _key(self, session_id: str) -> dict[str, Any]:
        return {"in_space": self._space, "of_session": session_id}
