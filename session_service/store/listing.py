"""The SQL of lists of sessions: a bounded stretch of one index, the other conditions evaluated on it."""

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, case, exists, func, literal, or_, select, true

from ramet_server.database.tables.session import session, session_tag
from session_service.rules.session_queries import Place, SessionFilter, SessionOrder, SessionQuery, beyond_index

_KEYS = {
    SessionOrder.CREATED_AT: session.c.created_at,
    SessionOrder.LAST_ACTIVE_AT: session.c.last_active_at,
}
_INDEXES = {
    SessionOrder.ID: "PRIMARY",
    SessionOrder.CREATED_AT: "session_by_creation",
    SessionOrder.LAST_ACTIVE_AT: "session_by_activity",
}
"""Named to MySQL and MariaDB, which else may read and sort a whole space by a smaller index."""


def examine(connection: Connection, space: str, query: SessionQuery) -> tuple[list[str], Place | None]:
    """Returns the ids that the query admits, and the place where its next page begins, if any."""
    rows = connection.execute(_statement(space, query)).all()
    admitted: list[str] = []
    metadata = 0
    examined = 0
    for row in rows:
        examined += 1
        if row.admitted:
            admitted.append(row.session_id)
            metadata += row.metadata_size
            if len(admitted) == query.limit or metadata > query.max_metadata:
                break
    if examined == len(rows) and len(rows) < query.examine:
        return admitted, None
    last = rows[examined - 1]
    return admitted, Place(None if query.order is SessionOrder.ID else last.key, last.session_id)


def _statement(space: str, query: SessionQuery) -> Select[Any]:
    admits = query.admits
    stretch = _tagged(space, query) if query.order is SessionOrder.ID and admits.tags else _ordered(space, query)
    return (
        select(
            session.c.session_id,
            stretch.c.key,
            case((_conditions(beyond_index(admits, query.order)), 1), else_=0).label("admitted"),
            func.coalesce(func.length(session.c.metadata_json), 0).label("metadata_size"),
        )
        .select_from(stretch)
        .join(session, and_(session.c.space_id == space, session.c.session_id == stretch.c.session_id))
        .order_by(*_order(stretch.c.key, stretch.c.session_id, query))
    )


def _ordered(space: str, query: SessionQuery) -> Any:
    """The stretch of the index that the list is ordered by."""
    key = _KEYS.get(query.order)
    where: list[ColumnElement[bool]] = [session.c.space_id == space]
    if key is not None:
        earliest, before = _range(query)
        if earliest is not None:
            where.append(key >= earliest)
        if before is not None:
            where.append(key < before)
    where += _after(key, session.c.session_id, query)
    shown = literal(0) if key is None else key
    return (
        select(session.c.session_id, shown.label("key"))
        .with_hint(session, f"FORCE INDEX ({_INDEXES[query.order]})", "mysql")
        .where(*where)
        .order_by(*_order(key, session.c.session_id, query))
        .limit(query.examine)
        .subquery("stretch")
    )


def _tagged(space: str, query: SessionQuery) -> Any:
    """The stretch of the sessions that bear the first tag, by id."""
    tagged = session_tag.c
    return (
        select(tagged.session_id, literal(0).label("key"))
        .with_hint(session_tag, "FORCE INDEX (session_tag_by_tag)", "mysql")
        .where(tagged.space_id == space, tagged.tag == query.admits.tags[0], *_after(None, tagged.session_id, query))
        .order_by(*_order(None, tagged.session_id, query))
        .limit(query.examine)
        .subquery("stretch")
    )


def _range(query: SessionQuery) -> tuple[datetime | None, datetime | None]:
    if query.order is SessionOrder.CREATED_AT:
        return query.admits.created_from, query.admits.created_before
    return query.admits.last_active_from, query.admits.last_active_before


def _after(key: ColumnElement[Any] | None, by: ColumnElement[str], query: SessionQuery) -> list[ColumnElement[bool]]:
    after = query.after
    if after is None:
        return []
    later = by < after.session_id if query.descending else by > after.session_id
    if key is None:
        return [later]
    # In this form both backends see the range of the key.
    if query.descending:
        return [key <= after.key, or_(key < after.key, later)]
    return [key >= after.key, or_(key > after.key, later)]


def _order(key: ColumnElement[Any] | None, by: ColumnElement[str], query: SessionQuery) -> list[ColumnElement[Any]]:
    columns: list[ColumnElement[Any]] = [by] if key is None or query.order is SessionOrder.ID else [key, by]
    return [column.desc() for column in columns] if query.descending else columns


def _conditions(admits: SessionFilter) -> ColumnElement[bool]:
    conditions: list[ColumnElement[bool]] = [true()]
    if admits.status is not None:
        conditions.append(session.c.status == admits.status)
    if admits.label_prefix:
        # LIKE alone folds case on SQLite, and = alone ignores spaces at the end on MySQL.
        conditions.append(session.c.label.startswith(admits.label_prefix, autoescape=True))
        conditions.append(func.substr(session.c.label, 1, len(admits.label_prefix)) == admits.label_prefix)
    if admits.created_from is not None:
        conditions.append(session.c.created_at >= admits.created_from)
    if admits.created_before is not None:
        conditions.append(session.c.created_at < admits.created_before)
    if admits.last_active_from is not None:
        conditions.append(session.c.last_active_at >= admits.last_active_from)
    if admits.last_active_before is not None:
        conditions.append(session.c.last_active_at < admits.last_active_before)
    for tag in admits.tags:
        bears = exists().where(
            session_tag.c.space_id == session.c.space_id,
            session_tag.c.session_id == session.c.session_id,
            session_tag.c.tag == tag,
        )
        conditions.append(bears.correlate(session))
    return and_(*conditions)
